package config

import "slices"

// Table is settings, in the order of the reference page.
type Table []Key

// With returns the table with the settings of a dialect.
func (t Table) With(sections ...[]Key) Table {
	return slices.Concat(append([][]Key{t}, sections...)...)
}

// find looks a key up by name.
func (t Table) find(name string) (Key, bool) {
	i := slices.IndexFunc(t, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}
	return t[i], true
}

func (t Table) names() []string {
	all := make([]string, 0, len(t))
	for _, key := range t {
		all = append(all, key.Name)
	}
	return all
}

// Default is the configuration without file, environment and flags.
func (t Table) Default() Config {
	settings, err := t.Load(Sources{})
	if err != nil {
		panic("config: the table's own defaults: " + err.Error())
	}
	return settings.Config
}
