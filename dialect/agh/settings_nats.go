package agh

import (
	"errors"
	"net/url"

	"github.com/parley-hub/parley/server/config"
)

// checkListen checks an address to listen on; it may be empty.
func checkListen(value string) error {
	if value == "" {
		return nil
	}
	return config.CheckListen(value)
}

// checkNATS checks the URL of a NATS server; it may be empty. Its error does not repeat
// the URL, which may have a token.
func checkNATS(value string) error {
	if value == "" {
		return nil
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls" && u.Scheme != "ws" && u.Scheme != "wss" {
		return errors.New("it is a URL such as nats://127.0.0.1:4222")
	}
	return nil
}

// maskURL hides the token or password of a URL.
func maskURL(value string) string {
	u, err := url.Parse(value)
	switch {
	case value == "":
		return ""
	case err != nil:
		return "***"
	case u.User != nil:
		u.User = url.User("***")
	}
	return u.String()
}
