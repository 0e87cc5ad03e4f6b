package wire

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/fault"
)

// Profile is the trust profile whose proofs are made and checked here.
const Profile = "agh-network.trust.ed25519-jcs/v1"

const algorithm = "Ed25519"

// unpadded takes no padding, no other alphabet and no stray bits.
var unpadded = base64.RawURLEncoding.Strict()

// decodeExact reads a text of exactly so many bytes. Decoding alone would skip
// line breaks, so that one signature would have many forms.
func decodeExact(text string, size int) ([]byte, bool) {
	if len(text) != unpadded.EncodedLen(size) {
		return nil, false
	}
	raw, err := unpadded.DecodeString(text)
	return raw, err == nil && len(raw) == size
}

// Key signs for one handle.
type Key struct {
	nickname string
	private  ed25519.PrivateKey
}

// NewKey makes a key at random.
func NewKey(nickname string) (*Key, error) {
	var seed [ed25519.SeedSize]byte
	_, _ = rand.Read(seed[:]) // it never fails
	return KeyFromSeed(nickname, seed[:])
}

// KeyFromSeed makes the key of a seed of 32 bytes.
func KeyFromSeed(nickname string, seed []byte) (*Key, error) {
	if !ValidNickname(nickname) {
		return nil, fault.New(fault.Invalid, "the nickname %q does not match ^[a-z0-9_-]{1,32}$", nickname)
	}
	if len(seed) != ed25519.SeedSize {
		return nil, fault.New(fault.Invalid, "a seed has %d bytes, not %d", ed25519.SeedSize, len(seed))
	}
	return &Key{nickname, ed25519.NewKeyFromSeed(seed)}, nil
}

// String hides the key in logs.
func (k *Key) String() string { return k.Handle() }

// Handle is the peer id that the key proves.
func (k *Key) Handle() string { return k.nickname + "@" + k.sum()[:32] }

// KeyID names the public key.
func (k *Key) KeyID() string { return "sha256:" + k.sum() }

// Public is the public key in the form of a proof.
func (k *Key) Public() string { return unpadded.EncodeToString(k.public()) }

func (k *Key) public() ed25519.PublicKey {
	public, _ := k.private.Public().(ed25519.PublicKey) // it always is one
	return public
}

func (k *Key) sum() string { return fingerprint(k.public()) }

func fingerprint(public []byte) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:])
}

// keyFile is a key as it is kept.
type keyFile struct {
	Profile string `json:"profile"`
	Handle  string `json:"handle"`
	KeyID   string `json:"key_id"`
	PubKey  string `json:"pubkey"`
	Seed    string `json:"seed"`
}

// Marshal is the key as a file holds it, the private half included.
func (k *Key) Marshal() ([]byte, error) {
	text, err := json.Marshal(keyFile{Profile, k.Handle(), k.KeyID(), k.Public(), unpadded.EncodeToString(k.private.Seed())})
	return append(text, '\n'), err
}

// ParseKey reads what Marshal writes. Its errors never repeat the file.
func ParseKey(text []byte) (*Key, error) {
	var file keyFile
	if err := json.Unmarshal(text, &file); err != nil || file.Profile != Profile {
		return nil, fault.New(fault.Invalid, "this is not a key file of %s; parley agh keys new makes one", Profile)
	}
	seed, err := unpadded.DecodeString(file.Seed)
	if err != nil || !ValidHandle(file.Handle) {
		return nil, fault.New(fault.Invalid, "the key file is damaged: its handle or seed cannot be read")
	}
	key, err := KeyFromSeed(file.Handle[:len(file.Handle)-33], seed)
	if err != nil {
		return nil, err
	}
	if key.Handle() != file.Handle {
		return nil, fault.New(fault.Invalid, "the key file is damaged: its handle is not the one of its seed")
	}
	return key, nil
}
