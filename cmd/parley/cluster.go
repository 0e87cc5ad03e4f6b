package main

import (
	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/server/config"
)

func (a *app) cluster() *cobra.Command {
	c := group("cluster", "Make and look after a cluster: several nodes, of which one serves",
		a.clusterInit(), a.clusterStatus(), a.clusterMove(), a.clusterReseed(), a.clusterKey(), a.clusterDev())
	c.Long = `Make and look after a cluster: several nodes, of which one serves and the others
stand by. The nodes share a log on NATS servers; docs/cluster.md tells how to set
one up. All these commands but dev ask the NATS servers, so they need the
settings of a node: --cluster, and cluster.* of the configuration file.`
	return c
}

// addCluster gives a command the flags that find a cluster, and --data if it uses
// the folder of a node.
func addCluster(c *cobra.Command, data bool) *settingsFlags {
	return addSettings(c, func(key config.Key) bool { return key.Name == "cluster.url" || data && key.Name == dataDir })
}

// clusterSettings returns the settings, which must name a cluster.
func (a *app) clusterSettings(flags *settingsFlags) (*config.Settings, error) {
	settings, err := flags.load(a.environ)
	if err == nil && len(settings.Cluster.URL) == 0 {
		err = usageError("name the cluster's NATS servers: --cluster nats://a:4222,b:4222,c:4222")
	}
	return settings, err
}
