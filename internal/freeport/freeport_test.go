package freeport_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/parley-hub/parley/internal/freeport"
)

// TestTake: ports are held until they are freed, and can be listened on then.
func TestTake(t *testing.T) {
	t.Parallel()
	ports, free, err := freeport.Take(t.Context(), 8)
	if err != nil || len(ports) != 8 {
		t.Fatal(ports, err)
	}
	listen := func(port int) error {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			err = l.Close()
		}
		return err
	}
	for _, port := range ports {
		if listen(port) == nil {
			t.Errorf("port %d is not held", port)
		}
	}
	free()
	for _, port := range ports {
		if err := listen(port); err != nil {
			t.Error(err)
		}
	}
}
