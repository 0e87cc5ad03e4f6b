package room

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
)

// Row is what lists show of a room. Times are Unix seconds.
type Row struct {
	Channel   string `json:"channel"`
	Purpose   string `json:"purpose"`
	CreatedBy string `json:"created_by"` // an identity
	CreatedAt int64  `json:"created_at"`
	UpdatedAt int64  `json:"updated_at"`
	Peers     int    `json:"peers"`
}

// ParseRow reads a row.
func ParseRow(value []byte) (Row, error) {
	var r Row
	if err := json.Unmarshal(value, &r); err != nil {
		return r, fmt.Errorf("room: row: %w", err)
	}
	return r, nil
}

// RowsPrefix is what the keys of rows begin with.
const RowsPrefix = prefixRoom

// PeersPrefix is what the keys of joined peers begin with.
const PeersPrefix = prefixPeer

// ParsePeer reads the entry of a joined peer.
func ParsePeer(key string, value []byte) (channel, peer string, p Peer, err error) {
	channel, peer, ok := strings.Cut(strings.TrimPrefix(key, prefixPeer), "/")
	if !ok {
		return "", "", p, fmt.Errorf("room: %q is not the key of a joined peer", key)
	}
	var raw peerJSON
	if err := json.Unmarshal(value, &raw); err != nil {
		return "", "", p, fmt.Errorf("room: joined peer: %w", err)
	}
	return channel, peer, Peer(raw), nil
}
