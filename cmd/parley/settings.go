package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-hub/parley/server/config"
)

// settingsFlags are the flags by which a command takes settings.
type settingsFlags struct {
	flags *pflag.FlagSet
	keys  []config.Key
	file  string
	set   []string
}

// addSettings gives a command --config, --set and the flags of the keys for
// which want is true.
func addSettings(c *cobra.Command, want func(config.Key) bool) *settingsFlags {
	s := &settingsFlags{flags: c.Flags()}
	c.Flags().StringVar(&s.file, "config", "", "configuration file (default "+config.DefaultFile+" in the working folder, if there is one)")
	c.Flags().StringArrayVar(&s.set, "set", nil, "set any `key=value` of parley config reference; may be repeated")
	for _, key := range allSettings {
		if key.Flag == "" || !want(key) {
			continue
		}
		s.keys = append(s.keys, key)
		// pflag would take a quoted word as the name of the value.
		meaning := strings.ReplaceAll(key.Meaning, "`", "")
		if key.Type() == "bool" {
			c.Flags().Bool(key.Flag, key.Default == "true", meaning)
		} else {
			c.Flags().String(key.Flag, key.Default, meaning)
		}
	}
	return s
}

func everyKey(config.Key) bool { return true }

// load reads file, environment and flags.
func (s *settingsFlags) load(environ []string) (*config.Settings, error) {
	src := config.Sources{Environ: environ, Flags: map[string]string{}, Named: map[string]string{}}
	var err error
	if src.File, err = s.fileName(environ); err != nil {
		return nil, err
	}
	for _, pair := range s.set {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, usageError("--set %s: it looks like --set log.level=debug", pair)
		}
		src.Flags[name], src.Named[name] = value, "--set"
	}
	for _, key := range s.keys {
		if flag := s.flags.Lookup(key.Flag); flag.Changed {
			src.Flags[key.Name], src.Named[key.Name] = flag.Value.String(), "--"+key.Flag
		}
	}
	loaded, err := allSettings.Load(src)
	if err != nil {
		return nil, err
	}
	files := []*string{
		&loaded.Data.Dir, &loaded.TLS.Cert, &loaded.TLS.Key, &loaded.Tracing.Headers,
		&loaded.Cluster.Creds, &loaded.Cluster.CA, &loaded.Cluster.Cert, &loaded.Cluster.Key,
	}
	for _, file := range files {
		if *file, err = expandHome(*file, environ); err != nil {
			return nil, err
		}
	}
	return loaded, nil
}

// named reports whether a flag was given.
func (s *settingsFlags) named(flag string) bool { return s.flags.Changed(flag) }

// namesFolder reports whether a flag names the data folder.
func (s *settingsFlags) namesFolder() bool {
	return s.named("data") || slices.ContainsFunc(s.set, func(pair string) bool { return strings.HasPrefix(pair, dataDir+"=") })
}

// dataDir is the key of the data folder.
const dataDir = "data.dir"

// fileName returns the file of --config or PARLEY_CONFIG, which must exist, or the
// default one if it exists.
func (s *settingsFlags) fileName(environ []string) (string, error) {
	if s.file != "" {
		return s.file, nil
	}
	if file := lookup(environ, config.EnvPrefix+"CONFIG"); file != "" {
		return file, nil
	}
	_, err := os.Stat(config.DefaultFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return config.DefaultFile, err
}

// lookup returns a variable; the last one of a name counts, as for the system.
func lookup(environ []string, name string) string {
	value := ""
	for _, pair := range environ {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}

// require makes flags that were defined before required.
func require(c *cobra.Command, names ...string) {
	for _, name := range names {
		if err := c.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is defined in the lines above
		}
	}
}
