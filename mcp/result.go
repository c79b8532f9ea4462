package mcp

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	_ "image/gif"  // dimensions of GIF images
	_ "image/jpeg" // and of JPEG
	_ "image/png"  // and of PNG
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gladhand/tool"
)

const (
	maxImages = 20
	maxSide   = 16384 // pixels
)

// result is what a server answered, for the model and for people.
func (t served) result(res *sdk.CallToolResult) tool.Result {
	r := tool.Result{Failed: res.IsError}
	var texts []string
	add := func(format string, args ...any) { texts = append(texts, fmt.Sprintf(format, args...)) }
	for _, block := range res.Content {
		switch b := block.(type) {
		case *sdk.TextContent:
			texts = append(texts, b.Text)
		case *sdk.ImageContent:
			texts = append(texts, picture(&r, b.Data))
		case *sdk.AudioContent:
			add("[audio, %s, %d bytes: not shown]", shown(b.MIMEType), len(b.Data))
		case *sdk.ResourceLink:
			add("[link to %s: %s]", shown(b.Name), oneLine(b.URI))
		case *sdk.EmbeddedResource:
			texts = append(texts, resource(&r, b.Resource))
		default:
			add("[content of an unknown type: not shown]")
		}
	}
	if res.StructuredContent != nil {
		raw, err := json.Marshal(res.StructuredContent)
		switch {
		case err != nil:
		case len(raw) > tool.MaxResult:
			add("[structured content of %d bytes: not shown]", len(raw))
		default:
			r.Raw = json.RawMessage(raw)
			if len(texts) == 0 {
				texts = append(texts, string(raw))
			}
		}
	}
	if len(texts) == 0 {
		add("[no output]")
	}
	text := strings.ToValidUTF8(strings.Join(texts, "\n"), "\uFFFD")
	r.Text = tool.Cut(text, tool.MaxResult-256) // and the line about what is left out
	return r
}

// resource is an embedded resource as text.
func resource(r *tool.Result, c *sdk.ResourceContents) string {
	switch {
	case c == nil:
		return "[an empty resource]"
	case c.Blob != nil:
		if kind(c.Blob) != "" {
			return "[" + oneLine(c.URI) + "]\n" + picture(r, c.Blob)
		}
		return fmt.Sprintf("[%s: %s, %d bytes: not shown]", oneLine(c.URI), shown(c.MIMEType), len(c.Blob))
	}
	return "[" + oneLine(c.URI) + "]\n" + c.Text
}

// picture takes an image into the result, when it is one that models take, and
// says so. What it is goes by its bytes and not by what the server calls it.
func picture(r *tool.Result, data []byte) string {
	mime := kind(data)
	switch {
	case mime == "":
		return fmt.Sprintf("[an image of %d bytes that is no valid PNG, JPEG, GIF or WebP: not shown]", len(data))
	case len(r.Images) == maxImages:
		return fmt.Sprintf("[an image: not shown, %d are the limit]", maxImages)
	}
	r.Images = append(r.Images, tool.Image{MIME: mime, Data: data})
	return fmt.Sprintf("[an image, %s, %d bytes]", mime, len(data))
}

// kind is the type of a valid image, or "".
func kind(data []byte) string {
	switch mime := http.DetectContentType(data); mime {
	case "image/png", "image/jpeg", "image/gif":
		c, name, err := image.DecodeConfig(bytes.NewReader(data))
		if err == nil && "image/"+name == mime && c.Width > 0 && c.Height > 0 && c.Width <= maxSide && c.Height <= maxSide {
			return mime
		}
	case "image/webp":
		// RIFF, the length of what follows, WEBP, and the first chunk's name.
		if len(data) > 20 && int64(binary.LittleEndian.Uint32(data[4:]))+8 == int64(len(data)) && bytes.HasPrefix(data[12:], []byte("VP8")) {
			return mime
		}
	}
	return ""
}
