package access

import (
	"fmt"
	"slices"
	"strings"
)

// Exposure is what decides whether the hub may listen beyond loopback.
type Exposure struct {
	Address     string   // as configured, for the message
	Data        string   // the folder of the keys, for the message; empty: the default one
	Loopback    bool     // the address is a loopback one
	Open        []string // settings that admit clients without a proof, and what changes that
	Cluster     bool     // the folder is a node's: keys are the cluster's
	Keys        int      // how many keys exist
	TLS         bool
	BehindProxy bool
	Insecure    bool
}

// Check refuses to listen beyond loopback unless authentication is configured
// or the operator insists. The error names what is missing and what adds it.
func (e Exposure) Check() error {
	if e.Loopback || e.Insecure {
		return nil
	}
	missing := slices.Clone(e.Open)
	if e.Keys == 0 {
		add := "parley keys add --role operator"
		switch {
		case e.Cluster:
			add = "parley cluster init --operator-key, or with parley keys add --role operator on a node that listens on a loopback address"
		case e.Data != "":
			add += " --data " + e.Data
		}
		missing = append(missing, "there is no key: make one with "+add)
	}
	if !e.TLS && !e.BehindProxy {
		missing = append(missing, "there is no TLS: give --tls-cert and --tls-key, or --behind-proxy if a proxy ends it")
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("refused to listen on %s, which is reachable from outside:\n  - %s\n"+
		"listen on a loopback address such as 127.0.0.1:7440, or insist with --insecure",
		e.Address, strings.Join(missing, "\n  - "))
}
