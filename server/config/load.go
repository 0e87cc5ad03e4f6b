package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"
	yamlv3 "go.yaml.in/yaml/v3"
)

// EnvPrefix begins the name of every environment variable that sets a key.
const EnvPrefix = "PARLEY_"

// DefaultFile is read from the working folder if no file is named.
const DefaultFile = "parley.yaml"

// maxFile bounds a configuration file.
const maxFile = 1 << 20

// Sources are the places that settings come from; later ones win.
type Sources struct {
	File    string            // "" reads none
	Environ []string          // as os.Environ
	Flags   map[string]string // key to value
	Named   map[string]string // key to how the flag was written, for origins
}

// Effective is one setting with its final value.
type Effective struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"`
	text   string
}

// Text returns the value as it is written in the file.
func (e Effective) Text() string { return e.text }

// Settings are a configuration with the origin of each value.
type Settings struct {
	Config
	Effective []Effective // in the order of the table
}

// Given reports whether a source set a key.
func (s *Settings) Given(key string) bool {
	return slices.ContainsFunc(s.Effective, func(e Effective) bool { return e.Key == key && e.Origin != defaultOrigin })
}

// defaultOrigin is the origin of values that no source set.
const defaultOrigin = "default"

// layer is one source, flattened.
type layer struct {
	values map[string]any
	origin func(key string) string
}

// Load merges the sources. Its error lists everything that is wrong with
// them, so that one round of corrections is enough.
func (t Table) Load(src Sources) (*Settings, error) {
	file, fileErr := t.fileLayer(src.File)
	environ, envErr := t.envLayer(src.Environ)
	flags, flagErr := t.flagLayer(src.Flags, src.Named)
	wrong := []error{fileErr, envErr, flagErr}

	merged := koanf.New(".")
	origins := map[string]string{}
	for _, l := range []layer{file, environ, flags} {
		if err := merged.Load(confmap.Provider(l.values, "."), nil); err != nil {
			return nil, fmt.Errorf("merge settings: %w", err)
		}
		for name := range l.values {
			origins[name] = l.origin(name)
		}
	}

	settings := &Settings{}
	for _, key := range t {
		text, origin := key.Default, defaultOrigin
		if merged.Exists(key.Name) {
			origin = origins[key.Name]
			var err error
			if text, err = scalar(merged.Get(key.Name), key); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %s: %w", origin, key.Name, err))
				continue
			}
		}
		if err := key.set(&settings.Config, text); err != nil {
			if key.mask != nil {
				text = key.mask(text)
			}
			wrong = append(wrong, fmt.Errorf("%s: %s: %q is refused: %w", origin, key.Name, text, err))
		}
		if key.Exposes != "" && key.Text(&settings.Config) == key.Exposes {
			settings.Exposing = append(settings.Exposing, key.exposing())
		}
		shown := Effective{Key: key.Name, Value: key.Value(&settings.Config), Origin: origin, text: key.Text(&settings.Config)}
		if key.mask != nil {
			shown.text = key.mask(shown.text)
			shown.Value = shown.text
		}
		settings.Effective = append(settings.Effective, shown)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	if err := settings.consistent(); err != nil {
		return nil, err
	}
	return settings, nil
}

func (t Table) fileLayer(file string) (layer, error) {
	if file == "" {
		return layer{}, nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return layer{}, fmt.Errorf("configuration file: %w", err)
	}
	if info.Size() > maxFile {
		return layer{}, fmt.Errorf("configuration file %s has %d bytes; the limit is %d", file, info.Size(), maxFile)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return layer{}, fmt.Errorf("configuration file: %w", err)
	}
	tree, err := yaml.Parser().Unmarshal(raw)
	if err != nil {
		return layer{}, fmt.Errorf("%s: %w", file, err)
	}
	own := koanf.New(".")
	if err := own.Load(confmap.Provider(tree, "."), nil); err != nil {
		return layer{}, fmt.Errorf("%s: %w", file, err)
	}
	values := own.All()
	at := lines(raw)
	origin := func(name string) string { return "file " + file + ":" + strconv.Itoa(at[name]) }
	var unknown []error
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, ok := t.find(name); ok {
			continue
		}
		if values[name] == nil || isEmptyMap(values[name]) {
			delete(values, name) // a section without content
			continue
		}
		unknown = append(unknown, fmt.Errorf("%s:%d: unknown key %s%s", file, at[name], name, meant(name, t.names())))
		delete(values, name)
	}
	return layer{values, origin}, errors.Join(unknown...)
}

func isEmptyMap(v any) bool {
	m, ok := v.(map[string]any)
	return ok && len(m) == 0
}

// lines returns the line of each key, for messages.
func lines(raw []byte) map[string]int {
	var doc yamlv3.Node
	at := map[string]int{}
	if yamlv3.Unmarshal(raw, &doc) != nil || len(doc.Content) == 0 {
		return at
	}
	var walk func(prefix string, node *yamlv3.Node)
	walk = func(prefix string, node *yamlv3.Node) {
		if node.Kind != yamlv3.MappingNode {
			return
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			name := prefix + node.Content[i].Value
			at[name] = node.Content[i].Line
			walk(name+".", node.Content[i+1])
		}
	}
	walk("", doc.Content[0])
	return at
}

// elsewhere are variables that set no key: commands, tests and builds read them.
var elsewhere = []string{"BIN", "CONFIG", "HUB", "NATS_TOKEN", "SCALE", "TOKEN", "UPDATE"}

// envLayer takes the variables of known keys. A variable that begins with a section's
// name and is not a key is an error, and so is one that is nearly a key. Others are
// ignored, such as those that Kubernetes sets for a service of this name.
func (t Table) envLayer(environ []string) (layer, error) {
	byEnv, sections, known := map[string]string{}, map[string]bool{}, []string{}
	for _, key := range t {
		byEnv[key.Env()] = key.Name
		section, _, _ := strings.Cut(key.Name, ".")
		sections[strings.ToUpper(section)] = true
		known = append(known, key.Env())
	}
	var unknown []error
	own := koanf.New(".")
	err := own.Load(env.Provider(".", env.Opt{
		Prefix:      EnvPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			if key, ok := byEnv[name]; ok {
				return key, value
			}
			own := strings.TrimPrefix(name, EnvPrefix)
			if section, _, _ := strings.Cut(own, "_"); !slices.Contains(elsewhere, own) && (sections[section] || isSlip(name, known)) {
				meant, _ := nearest(name, known)
				unknown = append(unknown, fmt.Errorf("environment: unknown setting %s; did you mean %s?", name, meant))
			}
			return "", nil
		},
	}), nil)
	if err != nil {
		return layer{}, fmt.Errorf("environment: %w", err)
	}
	origin := func(name string) string {
		key, _ := t.find(name)
		return "environment " + key.Env()
	}
	return layer{own.All(), origin}, errors.Join(unknown...)
}

func (t Table) flagLayer(flags, named map[string]string) (layer, error) {
	values := map[string]any{}
	var unknown []error
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if _, ok := t.find(name); !ok {
			unknown = append(unknown, fmt.Errorf("flag %s: unknown key %s%s", named[name], name, meant(name, t.names())))
			continue
		}
		values[name] = flags[name]
	}
	return layer{values, func(name string) string { return "flag " + named[name] }}, errors.Join(unknown...)
}

// scalar turns a parsed value into text, and a list into comma-separated text.
func scalar(value any, key Key) (string, error) {
	list, isList := value.([]any)
	switch _, wantsList := key.field(&Config{}).(*[]string); {
	case isList && !wantsList:
		return "", errors.New("a list is given; one value is expected")
	case isList:
		parts := make([]string, 0, len(list))
		for _, item := range list {
			part, ok := item.(string)
			if !ok || strings.Contains(part, ",") {
				return "", fmt.Errorf("%v is not a text without commas", item)
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, ","), nil
	}
	switch v := value.(type) {
	case nil:
		return "", errors.New("the value is missing")
	case bool, int, int64, uint64, string:
		return fmt.Sprint(v), nil
	default:
		return "", fmt.Errorf("%s is given; %s is expected", kindOf(v), key.wants())
	}
}

// kindOf names the type of a parsed value.
func kindOf(value any) string {
	switch v := value.(type) {
	case map[string]any:
		return "a section"
	case float64:
		return fmt.Sprintf("the fraction %v", v)
	}
	return fmt.Sprintf("%.100v", value)
}

// consistent checks settings that depend on each other.
func (s *Settings) consistent() error {
	if (s.TLS.Cert == "") != (s.TLS.Key == "") {
		return errors.New("tls.cert and tls.key belong together: set both, or neither")
	}
	return nil
}
