package natsbroker

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// TokenFile is the name of the file with the token of this process's server.
const TokenFile = "nats-token"

// Token reads the token from a folder, made at first use.
func Token(dir string) (string, error) {
	file := filepath.Join(dir, TokenFile)
	data, err := os.ReadFile(file) //nolint:gosec // a file of the data folder
	if err == nil {
		if token := strings.TrimSpace(string(data)); token != "" {
			return token, nil
		}
		return "", fmt.Errorf("natsbroker: %s is empty; remove it, and a new token is made", file)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("natsbroker: token: %w", err)
	}
	var secret [16]byte
	_, _ = rand.Read(secret[:]) // never fails: crypto/rand ends the process instead
	token := hex.EncodeToString(secret[:])
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		return "", fmt.Errorf("natsbroker: token: %w", err)
	}
	return token, nil
}
