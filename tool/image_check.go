package tool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// What follows walks through an image from its first part to its last, without decoding
// it: a picture of 8000 × 8000 pixels would take 256 MB. A download that stopped half
// way is what is broken most often, and looks right in its first bytes.

var (
	errCut     = errors.New("it ends too early")
	errDamaged = errors.New("it is damaged")
	errNoImage = errors.New("there is no picture in it")
)

// checkPNG follows the chunks up to IEND, and adds up each.
func checkPNG(b []byte) error {
	seen := false
	for b = b[8:]; ; {
		if len(b) < 12 {
			return errCut
		}
		n := int64(binary.BigEndian.Uint32(b))
		if n+12 > int64(len(b)) {
			return errCut
		}
		kind, sum := string(b[4:8]), binary.BigEndian.Uint32(b[8+n:])
		if crc32.ChecksumIEEE(b[4:8+n]) != sum {
			return errDamaged
		}
		switch {
		case kind == "IDAT":
			seen = true
		case kind == "IEND" && !seen:
			return errNoImage
		case kind == "IEND":
			return nil
		}
		b = b[n+12:]
	}
}

// checkJPEG follows the segments up to the picture, and looks for the end behind it.
func checkJPEG(b []byte) error {
	for b = b[2:]; ; {
		if len(b) < 4 {
			return errCut
		}
		switch {
		case b[0] != 0xFF:
			return errDamaged
		case b[1] == 0xFF: // padding
			b = b[1:]
			continue
		case b[1] == 0xD9:
			return errNoImage
		case b[1] == 0xDA:
			if !bytes.Contains(b, []byte{0xFF, 0xD9}) {
				return errCut
			}
			return nil
		case b[1] == 0x01 || b[1] >= 0xD0 && b[1] <= 0xD7: // without a length
			b = b[2:]
			continue
		}
		n := 2 + int(binary.BigEndian.Uint16(b[2:]))
		if n < 4 {
			return errDamaged
		}
		if n > len(b) {
			return errCut
		}
		b = b[n:]
	}
}

// checkGIF follows the blocks up to the trailer.
func checkGIF(b []byte) error {
	table := func(flags byte) int {
		if flags&0x80 == 0 {
			return 0
		}
		return 3 << (1 + flags&7)
	}
	seen := false
	at := 13 + table(b[10]) // the configuration was read, so these are there
	for {
		if at >= len(b) {
			return errCut
		}
		switch b[at] {
		case 0x3B:
			if !seen {
				return errNoImage
			}
			return nil
		case 0x21:
			at += 2
		case 0x2C:
			if at+10 > len(b) {
				return errCut
			}
			seen = true
			at += 10 + table(b[at+9]) + 1
		default:
			return errDamaged
		}
		for { // the parts of the block, the last of which is empty
			if at >= len(b) {
				return errCut
			}
			n := int(b[at])
			if at += 1 + n; n == 0 {
				break
			}
		}
	}
}

// webpSize follows the chunks up to a picture, or of an animation to its first, and reads
// the size.
func webpSize(b []byte) (w, h int, err error) {
	if len(b) < 20 {
		return 0, 0, errCut
	}
	size := int64(binary.LittleEndian.Uint32(b[4:])) + 8
	if size > int64(len(b)) {
		return 0, 0, errCut
	}
	for b = b[min(12, size):size]; len(b) >= 8; {
		kind, n := string(b[:4]), int64(binary.LittleEndian.Uint32(b[4:]))
		if n > int64(len(b)-8) {
			return 0, 0, errCut
		}
		data := b[8 : 8+n]
		b = b[8+n:]
		if n%2 == 1 && len(b) > 0 {
			b = b[1:]
		}
		switch {
		case kind == "VP8X" && n >= 10:
			w, h = 1+(int(data[4])|int(data[5])<<8|int(data[6])<<16), 1+(int(data[7])|int(data[8])<<8|int(data[9])<<16)
		case kind == "VP8 " && (n < 10 || data[0]&1 != 0 || string(data[3:6]) != "\x9d\x01\x2a"):
			return 0, 0, errDamaged
		case kind == "VP8 ":
			if w == 0 {
				w, h = int(binary.LittleEndian.Uint16(data[6:])&0x3fff), int(binary.LittleEndian.Uint16(data[8:])&0x3fff)
			}
			return w, h, sized(w, h)
		case kind == "VP8L" && (n < 5 || data[0] != 0x2f):
			return 0, 0, errDamaged
		case kind == "VP8L":
			if v := int(binary.LittleEndian.Uint32(data[1:])); w == 0 {
				w, h = v&0x3fff+1, v>>14&0x3fff+1
			}
			return w, h, nil
		case kind == "ANMF" && w > 0:
			return w, h, nil
		}
	}
	return 0, 0, errNoImage
}

func sized(w, h int) error {
	if w == 0 || h == 0 {
		return errNoImage
	}
	return nil
}
