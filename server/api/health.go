package api

import (
	"net/http"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

type healthBody struct {
	Version     string            `json:"version"`
	StartedAt   time.Time         `json:"started_at"`
	Hub         hub.Health        `json:"hub"`
	Stats       statsBody         `json:"stats"`
	Quarantined map[string]string `json:"quarantined"` // channels that cannot be folded, and why
	Cluster     *ClusterHealth    `json:"cluster"`     // null: the hub is not in a cluster
}

// ClusterHealth is the state of the cluster as the serving node knows it.
type ClusterHealth struct {
	Name    string        `json:"name"`
	Node    string        `json:"node"`    // the serving node, which answers
	Shards  int           `json:"shards"`  // of the cluster
	Waiting string        `json:"waiting"` // why nothing is acknowledged at the moment; empty: writes are acknowledged
	Nodes   []ClusterNode `json:"nodes"`   // those that are alive, by name
}

// ClusterNode is one node of a cluster.
type ClusterNode struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Version string `json:"version"`
	Role    string `json:"role"` // serving, standby, or joining while its copies do not follow yet
	Lag     uint64 `json:"lag"`  // how many batches its copy is behind, in the shard where that is most
}

type statsBody struct {
	ChannelsLoaded int64                `json:"channels_loaded"`
	BytesFolded    int64                `json:"bytes_folded"`
	LiveLost       int64                `json:"live_lost"`
	Refused        map[fault.Code]int64 `json:"refused"`
	RefusedAtDoor  map[string]int64     `json:"refused_at_door"` // requests and connections, by reason
	Loaded         int                  `json:"loaded"`
	Waiting        int                  `json:"waiting"`
	Followers      int                  `json:"followers"` // streams open now
}

func (a *API) health(c *call) error {
	health, err := a.hub.Health(c.Context())
	if err != nil {
		return err
	}
	s := a.hub.Stats()
	body := healthBody{Version: a.cfg.Version, StartedAt: a.started, Hub: health, Quarantined: map[string]string{}, Stats: statsBody{
		ChannelsLoaded: s.ChannelsLoaded, BytesFolded: s.BytesFolded, LiveLost: s.LiveLost, Refused: s.Refused, RefusedAtDoor: a.cfg.RefusedAtDoor(),
		Loaded: s.Loaded, Waiting: s.Waiting, Followers: len(a.followers),
	}}
	for id, err := range a.hub.Quarantined() {
		body.Quarantined[id] = err.Error()
	}
	if a.cfg.Cluster != nil {
		body.Cluster = a.cfg.Cluster()
	}
	return c.write(http.StatusOK, body)
}
