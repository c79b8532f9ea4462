package tool

import (
	"bytes"
	"fmt"
	"image"
	_ "image/gif"  // what models take
	_ "image/jpeg" // the same
	_ "image/png"  // the same
	"io"
)

// MaxImage is how many bytes an image may have, maxSide how many pixels each way:
// what all providers take.
const (
	MaxImage = 5 << 20 / 4 * 3 // base64 makes 5 MiB of it
	maxSide  = 8000
)

// readImage reads an image of a kind that models take. It returns nil for a file that
// is none, and an error for one that no provider would take: once in a conversation,
// it would make every later request fail.
func readImage(path, shown string) (img *Image, note string, err error) {
	f, fi, err := openRegular(path, shown)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	head := make([]byte, 16)
	n, _ := io.ReadFull(f, head)
	mime := imageMIME(head[:n])
	switch {
	case mime == "":
		return nil, "", nil
	case fi.Size() > MaxImage:
		return nil, "", fmt.Errorf("%s is an image of %d bytes, and %d are the most that can be shown; make it smaller", shown, fi.Size(), MaxImage)
	}
	rest, err := io.ReadAll(io.LimitReader(f, MaxImage+1))
	if err != nil {
		return nil, "", plain(shown, err)
	}
	img = &Image{MIME: mime, Data: append(head[:n:n], rest...)}
	w, h, err := img.size()
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("%s looks like an image (%s) and is broken: %w", shown, mime, err)
	case w > maxSide || h > maxSide:
		return nil, "", fmt.Errorf("%s has %d × %d pixels, and %d each way are the most that can be shown; make it smaller", shown, w, h, maxSide)
	}
	return img, fmt.Sprintf("[%s: %s, %d × %d pixels, %d bytes]", shown, mime, w, h, len(img.Data)), nil
}

func imagesOf(img *Image) []Image {
	if img == nil {
		return nil
	}
	return []Image{*img}
}

// imageMIME goes by content only.
func imageMIME(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(head, []byte("\xFF\xD8\xFF")):
		return "image/jpeg"
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return "image/gif"
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

// size is how many pixels the image has each way. An image that ends too early, or is
// damaged, is an error.
func (i *Image) size() (w, h int, err error) {
	var check func([]byte) error
	switch i.MIME {
	case "image/webp":
		return webpSize(i.Data)
	case "image/png":
		check = checkPNG
	case "image/jpeg":
		check = checkJPEG
	case "image/gif":
		check = checkGIF
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(i.Data))
	if err == nil {
		err = check(i.Data)
	}
	if err == nil && (c.Width == 0 || c.Height == 0) {
		err = errNoImage
	}
	return c.Width, c.Height, err
}
