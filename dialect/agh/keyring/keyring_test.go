package keyring_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/agh/keyring"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
)

func TestRing(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	data := filepath.Join(t.TempDir(), "data")
	ring := keyring.At(data)
	list, err := ring.List()
	c.NoError(err)
	c.Equal(len(list), 0)
	_, _, err = ring.Find("mason")
	c.Equal(fault.CodeOf(err), fault.NotFound)

	made, err := ring.New("mason")
	c.NoError(err)
	stat, err := os.Stat(made.File)
	c.NoError(err)
	c.Equal(stat.Mode().Perm(), os.FileMode(0o600))
	stat, err = os.Stat(filepath.Join(data, keyring.Folder))
	c.NoError(err)
	c.Equal(stat.Mode().Perm(), os.FileMode(0o700))

	again := keyring.At(data)
	key, info, err := again.Find("mason")
	c.NoError(err)
	c.Equal(info, made)
	c.Equal(key.Handle(), made.Handle)
	c.True(wire.ValidHandle(made.Handle), "%s", made.Handle)

	second, err := ring.New("mason")
	c.NoError(err)
	_, _, err = ring.Find("mason")
	c.ErrorContains(err, "2 keys have the nickname", made.Handle, second.Handle)
	_, info, err = ring.Find(second.Handle)
	c.NoError(err)
	c.Equal(info, second)
	list, err = ring.List()
	c.NoError(err)
	c.Equal(len(list), 2)
	entries, err := os.ReadDir(filepath.Join(data, keyring.Folder))
	c.NoError(err)
	c.Equal(len(entries), 2)

	_, err = ring.New("Mason")
	c.Equal(fault.CodeOf(err), fault.Invalid)
	c.NoError(os.Chmod(made.File, 0o644))
	_, err = keyring.Read(made.File)
	c.ErrorContains(err, "chmod 600")
	c.NoError(os.WriteFile(second.File, []byte("{}"), 0o600))
	_, err = keyring.Read(second.File)
	c.ErrorContains(err, "not a key file")
	_, err = ring.List()
	c.True(err != nil, "a damaged key is listed")
	_, err = keyring.Read(filepath.Join(data, "none"))
	c.Equal(fault.CodeOf(err), fault.NotFound)
}

func TestARingIsBounded(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	data := t.TempDir()
	ring := keyring.At(data)
	first, err := ring.New("a")
	c.NoError(err)
	for i := range keyring.MaxKeys - 1 {
		key, err := wire.KeyFromSeed("b", append(make([]byte, 30), byte(i), byte(i>>8)))
		c.NoError(err)
		c.NoError(os.WriteFile(filepath.Join(filepath.Dir(first.File), key.Handle()+".json"), nil, 0o600))
	}
	_, err = ring.New("c")
	c.Equal(fault.CodeOf(err), fault.TooLarge)
}
