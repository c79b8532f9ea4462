//go:build unix

package tool

import (
	"os"
	"syscall"
)

// openNonblock opens for reading without waiting for a pipe's other end.
func openNonblock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
}
