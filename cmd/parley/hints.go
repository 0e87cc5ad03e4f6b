package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/nats-io/nats.go"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/journal"
)

// advise adds a command that would help to an error, if there is one.
func advise(err error) error {
	if err == nil {
		return nil
	}
	if hint := hintFor(err); hint != "" {
		return fmt.Errorf("%w\n  → %s", err, hint)
	}
	return err
}

// reasonHints are hints that depend on the reason only.
var reasonHints = map[fault.Reason]string{
	fault.NoChannel:    "parley channels list shows which there are",
	fault.NoTask:       "parley tasks list shows which there are",
	fault.NoAgent:      "parley agents list shows who is there; parley agents add NAME registers someone",
	fault.NameTaken:    "choose another name; parley agents list shows who is there",
	fault.NoActor:      "add --as NAME; parley agents list shows who is there",
	fault.ChannelEnded: "parley channels open starts another",
	fault.NeedsAPIKey:  "set PARLEY_TOKEN to its token; an operator makes one with parley keys add --agent NAME",
	fault.NeedsRole:    "set PARLEY_TOKEN to such a key's token; parley keys add --role operator makes one",
}

// codeHints are hints for refusals without a reason.
var codeHints = map[fault.Code]string{
	fault.AuthFailed: "set PARLEY_TOKEN to a token; without one, stop the hub and parley keys add --role operator makes one in its data folder, parley cluster operator-key in that of a cluster's node",
	fault.Gap:        "leave --after out to begin at the start",
	fault.InboxFull:  "parley agents list shows who has fallen behind",
}

func hintFor(err error) string {
	if _, ok := errors.AsType[natsError](err); ok {
		return natsHint(err)
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "that name leads to no machine: check its spelling, or name the hub by its address"
	}
	if unreachable, ok := errors.AsType[*net.OpError](err); ok && unreachable.Op == "dial" {
		return "start a hub with parley serve, or name another with --hub URL"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return "that address does not speak TLS: name it with http://"
	}
	if errors.Is(err, v1.ErrTLS) {
		return "that address speaks TLS: name it with https://"
	}
	if errors.Is(err, v1.ErrNoHub) {
		return "that address is no hub's; name another with --hub URL"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "nobody that this machine trusts signed the hub's certificate: add --ca FILE, or set PARLEY_CA"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the certificate is for other names; name the hub by one of them"
	}
	if errors.Is(err, journal.ErrDamaged) {
		return "parley data check DIR tells what is damaged; restore a backup, or parley data salvage DIR --to NEW copies what is readable"
	}
	reason := fault.ReasonOf(err)
	if who := fault.DetailsOf(err)[fault.DetailExpected]; reason == fault.OutOfTurn && who != "" {
		return "parley send CHANNEL TEXT --as " + who + " speaks in turn; parley tail CHANNEL waits for it"
	}
	return cmp.Or(reasonHints[reason], codeHints[fault.CodeOf(err)])
}

// natsHint is a hint for an error of the NATS servers of a cluster.
func natsHint(err error) string {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "that name leads to no machine: check its spelling in cluster.url and cluster.monitor"
	}
	if _, ok := errors.AsType[*net.OpError](err); ok || errors.Is(err, nats.ErrNoServers) {
		return "start the NATS servers, or correct their addresses (cluster.url: port 4222, cluster.monitor: port 8222)"
	}
	return ""
}
