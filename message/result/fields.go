package result

import "github.com/parley-hub/parley/message/value"

// fields are the checks that records share; path is the prefix of a key in errors.
type fields struct {
	c    *checker
	path string
	m    *value.Map
}

func (f fields) require(ok bool, key, reason string) {
	if !ok {
		f.c.refuse(f.path+key, reason)
	}
}

func (f fields) text(key string) {
	_, ok := value.NonEmptyString(f.m.At(key))
	f.require(ok, key, "must be a non-empty string")
}

func (f fields) container(key string) {
	f.require(value.IsContainer(f.m.At(key)), key, "must be an array")
}

func (f fields) integer(key string) {
	_, ok := value.Integer(f.m.At(key))
	f.require(ok, key, "must be an integer")
}

func (f fields) boolean(key string) {
	_, ok := f.m.At(key).(bool)
	f.require(ok, key, "must be a boolean")
}

func (f fields) stringIfPresent(key string) {
	v, present := f.m.Get(key)
	_, ok := v.(string)
	f.require(!present || ok, key, "must be a string when present")
}

func (f fields) integerIfPresent(key string) {
	v, present := f.m.Get(key)
	_, ok := value.Integer(v)
	f.require(!present || ok, key, "must be an integer when present")
}

func (f fields) boolIfPresent(key string) {
	v, present := f.m.Get(key)
	_, ok := v.(bool)
	f.require(!present || ok, key, "must be a boolean when present")
}

func (f fields) containerIfPresent(key string) {
	v, present := f.m.Get(key)
	f.require(!present || value.IsContainer(v), key, "must be an array when present")
}
