package tool

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

// pictures are small ones of each kind, of 5 × 3 pixels.
func pictures(t testing.TB) map[string][]byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, 5, 3), color.Palette{color.Black, color.White})
	img.SetColorIndex(1, 1, 1)
	var p, j, g bytes.Buffer
	for _, err := range []error{png.Encode(&p, img), jpeg.Encode(&j, img, nil), gif.Encode(&g, img, nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	all := map[string][]byte{"image/png": p.Bytes(), "image/jpeg": j.Bytes(), "image/gif": g.Bytes()}
	// By hand, since nothing here writes these: a lossless header, and the same in the
	// extended form; no decoder reads as far as the pixels.
	le := func(n, size int) (b []byte) {
		for range size {
			b = append(b, byte(n))
			n >>= 8
		}
		return b
	}
	chunk := func(kind string, data []byte) []byte {
		b := append(append([]byte(kind), le(len(data), 4)...), data...)
		if len(data)%2 == 1 {
			b = append(b, 0)
		}
		return b
	}
	riff := func(chunks ...[]byte) []byte {
		body := append([]byte("WEBP"), bytes.Join(chunks, nil)...)
		return append(append([]byte("RIFF"), le(len(body), 4)...), body...)
	}
	vp8l := chunk("VP8L", append([]byte{0x2f}, append(le(4|2<<14, 4), 0, 0, 0)...))
	vp8 := chunk("VP8 ", append([]byte{0x10, 0, 0, 0x9d, 1, 0x2a, 5, 0, 3, 0}, make([]byte, 7)...))
	ext := chunk("VP8X", append([]byte{0x10, 0, 0, 0}, append(le(4, 3), le(2, 3)...)...))
	all["image/webp"] = riff(vp8l)
	all["image/webp;lossy"] = riff(vp8)
	all["image/webp;extended"] = riff(ext, chunk("ICCP", []byte("abc")), vp8)
	all["image/webp;animated"] = riff(ext, chunk("ANIM", make([]byte, 6)), chunk("ANMF", make([]byte, 20)))
	return all
}

func TestReadImage(t *testing.T) {
	for kind, data := range pictures(t) {
		mime, _, _ := strings.Cut(kind, ";")
		t.Run(kind, func(t *testing.T) {
			e := testEnv(t)
			e.put(t, "x.txt", string(data)) // by content, not by name
			r := e.must(t, "read_file", map[string]string{"path": "x.txt"})
			want := fmt.Sprintf("[x.txt: %s, 5 × 3 pixels, %d bytes]", mime, len(data))
			if r.Text != want || len(r.Images) != 1 || r.Images[0].MIME != mime || !bytes.Equal(r.Images[0].Data, data) {
				t.Errorf("%q, %d images; want %q", r.Text, len(r.Images), want)
			}
			// What is behind the end is nobody's business.
			e.put(t, "x.txt", string(data)+"more")
			e.must(t, "read_file", map[string]string{"path": "x.txt"})
		})
	}
}

// R125: what no provider would take does not get into the conversation, wherever it was
// cut off.
func TestReadBrokenImage(t *testing.T) {
	for kind, data := range pictures(t) {
		t.Run(kind, func(t *testing.T) {
			e := testEnv(t)
			for n := 12; n < len(data); n++ {
				e.put(t, "x", string(data[:n]))
				r, err := e.do(t, "read_file", map[string]string{"path": "x"})
				if err == nil || len(r.Images) > 0 || !strings.Contains(err.Error(), "broken") {
					t.Fatalf("the first %d of %d bytes: %q, %v", n, len(data), r.Text, err)
				}
			}
		})
	}
	e := testEnv(t)
	pics := pictures(t)
	flip := bytes.Clone(pics["image/png"])
	flip[len(flip)-20] ^= 1
	webp := bytes.Clone(pics["image/webp"])
	webp[20] = 0
	for name, data := range map[string][]byte{
		"png with a wrong sum": flip, "webp without its mark": webp,
		"png without a picture": append(bytes.Clone(pics["image/png"][:33]), "\x00\x00\x00\x00IEND\xaeB`\x82"...),
		"jpeg of nothing":       []byte("\xFF\xD8\xFF\xD9aaaaaaaa"),
		"gif of nothing":        []byte("GIF89a\x05\x00\x03\x00\x00\x00\x00;"),
		"webp of nothing":       []byte("RIFF\x10\x00\x00\x00WEBPXXXX\x04\x00\x00\x00abcd"),
		"not even that":         []byte("RIFF\x00\x00\x00\x00WEBPXXXX\x04\x00\x00\x00abcd"),
	} {
		e.put(t, "x", string(data))
		if _, err := e.do(t, "read_file", map[string]string{"path": "x"}); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// The limits, and one over.
func TestReadImageLimits(t *testing.T) {
	e := testEnv(t)
	side := func(w, h int) {
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
			t.Fatal(err)
		}
		e.put(t, "x", b.String())
	}
	side(maxSide, 1)
	e.must(t, "read_file", map[string]string{"path": "x"})
	for _, s := range [][2]int{{maxSide + 1, 1}, {1, maxSide + 1}} {
		side(s[0], s[1])
		if _, err := e.do(t, "read_file", map[string]string{"path": "x"}); err == nil || !strings.Contains(err.Error(), "smaller") {
			t.Errorf("%v: %v", s, err)
		}
	}
	small := string(pictures(t)["image/png"])
	e.put(t, "x", small+strings.Repeat("x", MaxImage-len(small)))
	if r := e.must(t, "read_file", map[string]string{"path": "x"}); base64.StdEncoding.EncodedLen(len(r.Images[0].Data)) > 5<<20 {
		t.Error("it is over 5 MiB on its way")
	}
	e.put(t, "x", small+strings.Repeat("x", MaxImage-len(small)+1))
	if _, err := e.do(t, "read_file", map[string]string{"path": "x"}); err == nil || !strings.Contains(err.Error(), "smaller") {
		t.Error(err)
	}
}

func FuzzImage(f *testing.F) {
	for _, data := range pictures(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		img := Image{MIME: imageMIME(data[:min(len(data), 16)]), Data: data}
		if img.MIME == "" {
			return
		}
		if w, h, err := img.size(); err == nil && (w <= 0 || h <= 0) {
			t.Errorf("%d × %d pixels", w, h)
		}
	})
}
