// Package freeport finds ports for servers that have to know them before they
// start, and that restart on them. They are below the ephemeral ports, because
// an outgoing connection could take an ephemeral port before the server
// starts.
package freeport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

const (
	lowest  = 10_000
	highest = 32_000
	tries   = 100 // for each port
)

// Take returns unused ports on 127.0.0.1, and holds them until free is called.
func Take(ctx context.Context, n int) (ports []int, free func(), err error) {
	var all []net.Listener
	free = func() {
		for _, l := range all {
			_ = l.Close()
		}
	}
	for tried := 0; len(ports) < n; tried++ {
		if tried == tries*n {
			free()
			return nil, func() {}, errors.New("no free ports were found")
		}
		port := lowest + rand.IntN(highest-lowest) //nolint:gosec // not a secret
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		all, ports = append(all, l), append(ports, port)
	}
	return ports, free, nil
}
