package config

import (
	"errors"
	"net/url"
	"strings"
)

// clusterKeys are the settings of a node of a cluster.
var clusterKeys = []Key{
	{
		Name: "cluster.url", Default: "", Flag: "cluster",
		Meaning: "NATS servers of the cluster that this hub is a node of, such as nats://a:4222,b:4222,c:4222; empty: the hub is alone. Made with `parley cluster init`",
		field:   func(c *Config) any { return &c.Cluster.URL }, check: checkNATS, mask: maskNATS,
	},
	{
		Name: "cluster.name", Default: "parley",
		Meaning: "name of the cluster; several may share NATS servers",
		field:   func(c *Config) any { return &c.Cluster.Name },
	},
	{
		Name: "cluster.node", Default: "", Flag: "node-name",
		Meaning: "name of this node, unlike all others; empty: the machine's",
		field:   func(c *Config) any { return &c.Cluster.Node }, check: checkNode,
	},
	{
		Name: "cluster.address", Default: "", Flag: "advertise",
		Meaning: "URL under which clients reach this node, such as https://a.example:7440, which the other nodes tell while it serves; empty: what it listens on",
		field:   func(c *Config) any { return &c.Cluster.Address }, check: checkAdvertised,
	},
	{
		Name: "cluster.creds", Default: "",
		Meaning: "file with the credentials of the NATS user; that user is trusted with everything in the cluster",
		field:   func(c *Config) any { return &c.Cluster.Creds },
	},
	{
		Name: "cluster.tls.ca", Default: "",
		Meaning: "file with the certificates that the NATS servers' are checked against, instead of the system's",
		field:   func(c *Config) any { return &c.Cluster.CA },
	},
	{
		Name: "cluster.tls.cert", Default: "",
		Meaning: "file with the certificate that this node shows to the NATS servers",
		field:   func(c *Config) any { return &c.Cluster.Cert },
	},
	{
		Name: "cluster.tls.key", Default: "",
		Meaning: "file with the key of cluster.tls.cert",
		field:   func(c *Config) any { return &c.Cluster.Key },
	},
	{
		Name: "cluster.monitor", Default: "",
		Meaning: "monitoring addresses of all NATS servers, such as http://a:8222, where a starting node asks whether they sync every write",
		field:   func(c *Config) any { return &c.Cluster.Monitor }, check: checkAdvertised,
	},
	{
		Name: "cluster.assume_sync", Default: "false",
		Meaning: "take it for true that every NATS server has `sync_interval: always`, instead of asking",
		field:   func(c *Config) any { return &c.Cluster.AssumeSync },
	},
	{
		Name: "cluster.shards", Default: "12", Most: 256,
		Meaning: "streams that `parley cluster init` makes; a cluster that exists keeps its number",
		field:   func(c *Config) any { return &c.Cluster.Shards },
	},
	{
		Name: "cluster.replicas", Default: "3", Most: 5,
		Meaning: "copies of each stream that `parley cluster init` asks the NATS servers for; so many servers must answer when a node starts",
		field:   func(c *Config) any { return &c.Cluster.Replicas },
	},
	{
		Name: "cluster.suspect", Default: "1.2s",
		Meaning: "a serving node that is not heard of for so long is replaced; the same on all nodes",
		field:   func(c *Config) any { return &c.Cluster.Suspect },
	},
	{
		Name: "cluster.group_bytes", Default: "1MiB", Most: 64 << 20,
		Meaning: "what is stored together in one message at most, if the servers' max_payload is not less",
		field:   func(c *Config) any { return &c.Cluster.GroupBytes },
	},
}

// checkNATS checks the URL of a server. Its error does not repeat the value, which may
// contain a password.
func checkNATS(text string) error {
	if !strings.Contains(text, "://") {
		text = "nats://" + text
	}
	u, err := url.Parse(text)
	if err != nil || !isHostPort(u.Host) || u.Scheme != "nats" && u.Scheme != "tls" || u.Path != "" && u.Path != "/" {
		return errors.New("a NATS server looks like nats://10.0.0.1:4222 or tls://nats.example:4222; separate several with commas")
	}
	return nil
}

// checkNode checks the name of a node, which is sent in headers.
func checkNode(text string) error {
	for _, r := range text {
		if r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return errors.New("the name of a node has up to 64 of a-z, A-Z, 0-9, -, _ and .")
		}
	}
	if len(text) > 64 {
		return errors.New("the name of a node has at most 64 characters")
	}
	return nil
}

// maskNATS hides users and passwords.
func maskNATS(value string) string {
	parts := strings.Split(value, ",")
	for i, part := range parts {
		scheme, rest, found := strings.Cut(part, "://")
		if !found {
			scheme, rest = "", part
		}
		if at := strings.LastIndex(rest, "@"); at >= 0 {
			rest = "***" + rest[at:]
		}
		if parts[i] = rest; found {
			parts[i] = scheme + "://" + rest
		}
	}
	return strings.Join(parts, ",")
}

// checkAdvertised checks the URL of a server.
func checkAdvertised(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || !isHostPort(u.Host) || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		return errors.New("a URL looks like https://a.example:7440: scheme, host and port, and no path")
	}
	return nil
}
