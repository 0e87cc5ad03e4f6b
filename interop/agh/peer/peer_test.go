package peer

import (
	"encoding/json"
	"os"
	"testing"
)

// The peers' own arithmetic, against the published vectors.
func TestDerivations(t *testing.T) {
	t.Parallel()
	if got := DirectID("ws_harbor", "dock", "tug.s02", "crane.s01"); got != "direct_84746c510d5845aa9078a8ca2f0f04a2" {
		t.Error(got)
	}
	if got := DirectID("Büro", "c0", "peer.9", "peer.10"); got != "direct_7aa1277172c29836f6383423c2611d6e" {
		t.Error(got)
	}
	if got := RouteToken("tug.s02"); got != "f517bf6ab72761a29c2494efbfaffc06" {
		t.Error(got)
	}
}

func TestSignature(t *testing.T) {
	t.Parallel()
	k := NewKey("agh-trust-vector-1", "mason")
	if k.Handle != "mason@459ad9d703350ba017bf94f6b93a807d" || RouteToken(k.Handle) != "459ad9d703350ba017bf94f6b93a807d" {
		t.Error(k.Handle)
	}
	text, err := os.ReadFile("testdata/vector-1.json")
	if err != nil {
		t.Fatal(err)
	}
	var e Envelope
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	signed := k.Sign(e)
	const want = "xvF_nkEmnFUlqF3gmronwNQSsvcHrERwtjGjF0WTLAFb50yUhVF9gPDqBuQjdLil4HRV8ZQuXnS2m-WEnkn3Dw"
	if got := signed["proof"].(map[string]any)["sig"]; got != want {
		t.Errorf("got %s", got)
	}
}
