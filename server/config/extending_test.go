package config

import "testing"

// The smallest setting: a field of a section and a row of the table. See
// docs/extending.md.
func TestSmallestSetting(t *testing.T) {
	t.Parallel()
	key := Key{
		Name: "limits.body", Default: "2MiB", Meaning: "size of one request's body",
		field: func(c *Config) any { return &c.Limits.Body },
	}
	known, ok := Core.find(key.Name)
	if !ok || known.Default != key.Default || known.Env() != key.Env() {
		t.Errorf("the table has %+v", known)
	}
	settings, err := Core.Load(Sources{Environ: []string{key.Env() + "=4KiB"}})
	if err != nil || *key.field(&settings.Config).(*Bytes) != 4<<10 {
		t.Errorf("%+v, %v", settings, err)
	}
}
