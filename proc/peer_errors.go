package proc

import (
	"net"

	"gladhand"
)

func unsupportedPeer(c net.Conn) error {
	return gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonUnsupported, "who is at the other end of a %T cannot be known", c)
}
