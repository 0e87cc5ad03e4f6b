package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// CheckListen refuses a text that is not an address to listen on. Whether its name
// resolves is only known when listening.
func CheckListen(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil || !isHost(host) && host != "" || !isPort(port) {
		return errors.New("it is not an address to listen on; it looks like 127.0.0.1:7440, [::1]:7440 or :0")
	}
	return nil
}

// checkOrigin refuses a text that browsers do not send as an origin.
func checkOrigin(text string) error {
	origin, err := url.Parse(text)
	if err != nil || !isHostPort(origin.Host) || !strings.EqualFold(origin.Scheme+"://"+origin.Host, strings.TrimSuffix(text, "/")) {
		return fmt.Errorf("%q is not an origin, which looks like https://desk.example or http://localhost:3000: scheme, host and port, and no path", text)
	}
	return nil
}

// checkHost refuses a text that cannot be in a Host header.
func checkHost(text string) error {
	if !isHostPort(text) {
		return fmt.Errorf("%q is not a host, which looks like hub.example or hub.example:8443: no scheme and no path", text)
	}
	return nil
}

func isHostPort(text string) bool {
	if host, port, err := net.SplitHostPort(text); err == nil {
		return isHost(host) && isPort(port)
	}
	if bare, ok := strings.CutPrefix(text, "["); ok {
		text, ok = strings.CutSuffix(bare, "]")
		return ok && isHost(text)
	}
	return isHost(text)
}

// isHost reports whether a text is an address, or may be a host's name.
func isHost(text string) bool {
	if strings.Contains(text, ":") {
		_, err := netip.ParseAddr(text)
		return err == nil
	}
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune(`/\?#@[]*"<>|^{},`, r)
	})
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && text == strconv.FormatUint(n, 10)
}

// checkCollector refuses a text that is not the address of a collector, or that holds
// a secret: the settings are shown.
func checkCollector(text string) error {
	at, err := url.Parse(text)
	switch {
	case text == "":
		return nil
	case err != nil || at.Scheme != "http" && at.Scheme != "https" || !isHostPort(at.Host):
		return errors.New("it is not the address of a collector, which looks like http://127.0.0.1:4318 or https://collector.example/v1/traces")
	case at.User != nil || at.RawQuery != "" || at.Fragment != "":
		return errors.New("a collector's address has no user, query or fragment; secrets go into the file of tracing.headers")
	}
	return nil
}
