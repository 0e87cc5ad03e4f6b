// Package contexts keeps the hubs that a person works with, by name, in one file.
// The file may hold tokens, so nobody else may read it.
package contexts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Context is a hub, how to reach it, and the token to show there.
type Context struct {
	Name     string `yaml:"name" json:"name"`
	Hub      string `yaml:"hub" json:"hub"`
	Token    string `yaml:"token,omitempty" json:"-"`
	TokenEnv string `yaml:"token_env,omitempty" json:"token_env,omitempty"`
	CA       string `yaml:"ca,omitempty" json:"ca,omitempty"`
}

// File is what the file holds.
type File struct {
	Current  string    `yaml:"current,omitempty"`
	Previous string    `yaml:"previous,omitempty"`
	Contexts []Context `yaml:"contexts"`

	path string
}

// mostContexts bounds the file.
const mostContexts = 1000

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Path returns the file that the environment names; empty if it names none.
func Path(lookup func(string) string) string {
	for _, place := range [][2]string{{"XDG_CONFIG_HOME", "."}, {"HOME", ".config"}, {"APPDATA", "."}} {
		if dir := lookup(place[0]); dir != "" {
			return filepath.Join(dir, place[1], "parley", "contexts.yaml")
		}
	}
	return ""
}

// Load reads the file; a file that does not exist holds nothing.
func Load(path string) (*File, error) {
	f := &File{path: path}
	if path == "" {
		return f, nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read contexts: %w", err)
	}
	if open(info) {
		return nil, fmt.Errorf("%s may be read by others (%s) and can hold tokens; chmod 600 it", path, info.Mode().Perm())
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read contexts: %w", err)
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(raw)))
	decoder.KnownFields(true)
	if err := decoder.Decode(f); err != nil && len(raw) > 0 {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Save replaces the file in one step.
func (f *File) Save() error {
	if f.path == "" {
		return errors.New("there is no folder for contexts; set XDG_CONFIG_HOME")
	}
	dir := filepath.Dir(f.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	raw, err := yaml.Marshal(f)
	if err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	temp, err := os.CreateTemp(dir, ".contexts-*") // 0600 from the beginning
	if err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	_, err = temp.Write(raw)
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), f.path)
	}
	if err != nil {
		return fmt.Errorf("write contexts: %w", errors.Join(err, os.Remove(temp.Name())))
	}
	return nil
}

// Find returns a context by its name.
func (f *File) Find(name string) (Context, error) {
	if i := f.index(name); i >= 0 {
		return f.Contexts[i], nil
	}
	if len(f.Contexts) == 0 {
		return Context{}, fmt.Errorf("there is no context %q; parley context add NAME --hub URL makes one", name)
	}
	return Context{}, fmt.Errorf("there is no context %q; there are %s", name, strings.Join(f.names(), ", "))
}

// Add adds a context, or replaces the one of the same name.
func (f *File) Add(c Context) error {
	if !validName.MatchString(c.Name) {
		return fmt.Errorf("%q is not a name for a context; it has letters, digits, '.', '_' and '-', at most 64, and begins with a letter or digit", c.Name)
	}
	if i := f.index(c.Name); i >= 0 {
		f.Contexts[i] = c
		return nil
	}
	if len(f.Contexts) >= mostContexts {
		return fmt.Errorf("there are %d contexts, which is the limit; remove one", mostContexts)
	}
	f.Contexts = append(f.Contexts, c)
	return nil
}

// Use makes a context the current one; "-" is the one before, and "" none.
func (f *File) Use(name string) error {
	if name == "-" {
		if f.Previous == "" {
			return errors.New("no context was used before")
		}
		name = f.Previous
	}
	if name != "" {
		if _, err := f.Find(name); err != nil {
			return err
		}
	}
	if name != f.Current {
		f.Previous, f.Current = f.Current, name
	}
	return nil
}

// Remove removes a context.
func (f *File) Remove(name string) error {
	if _, err := f.Find(name); err != nil {
		return err
	}
	f.Contexts = slices.Delete(f.Contexts, f.index(name), f.index(name)+1)
	if f.Current == name {
		f.Current = ""
	}
	if f.Previous == name {
		f.Previous = ""
	}
	return nil
}

func (f *File) index(name string) int {
	return slices.IndexFunc(f.Contexts, func(c Context) bool { return c.Name == name })
}

func (f *File) names() []string {
	var names []string
	for _, c := range f.Contexts {
		names = append(names, c.Name)
	}
	return names
}
