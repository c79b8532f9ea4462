package agent

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"slices"

	"gladhand/acp"
	"gladhand/model"
)

// content makes parts of a message of ACP content: one block, or an array of them.
// An image that is broken, or of a kind that models do not take, becomes words: given
// to a provider it would make every later request fail.
func content(blocks json.RawMessage) []model.Part {
	list := []json.RawMessage{blocks}
	if b := bytes.TrimSpace(blocks); len(b) > 0 && b[0] == '[' {
		list = nil
		if json.Unmarshal(b, &list) != nil {
			return nil
		}
	}
	var parts []model.Part
	for _, b := range list {
		parts = joinParts(parts, []model.Part{blockPart(b)})
	}
	return parts
}

// joinParts adds parts of the same message; texts that meet become one.
func joinParts(parts, more []model.Part) []model.Part {
	for _, p := range more {
		n := len(parts)
		switch {
		case p.Text == "" && p.Image == nil:
		case n > 0 && p.Image == nil && parts[n-1].Image == nil:
			parts = slices.Clone(parts)
			parts[n-1].Text += "\n" + p.Text
		default:
			parts = append(parts, p)
		}
	}
	return parts
}

func blockPart(block json.RawMessage) model.Part {
	var b struct {
		Type string `json:"type"`
		Data string `json:"data"`
	}
	if json.Unmarshal(block, &b) != nil || b.Type != "image" {
		return model.Part{Text: acp.Text(block)}
	}
	data, err := base64.StdEncoding.DecodeString(b.Data)
	if mime := imageType(data); err == nil && mime != "" {
		return model.Part{Image: &model.Image{MIME: mime, Data: data}}
	}
	return model.Part{Text: "[an image that cannot be read was left out]"}
}

// imageType is what data is, of the kinds that models take; empty for anything else.
func imageType(data []byte) string {
	if len(data) >= 16 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP" {
		return "image/webp"
	}
	if _, format, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		return "image/" + format
	}
	return ""
}
