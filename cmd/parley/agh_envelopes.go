package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/dialect/agh/keyring"
	"github.com/parley-hub/parley/dialect/agh/wire"
)

func (a *app) aghValidate() *cobra.Command {
	var now int64
	var strict, lenient bool
	c := &cobra.Command{
		Use:   "validate",
		Short: "Judge AGH envelopes, one JSON line each",
		Long: `Judge AGH envelopes: reads one a line on standard input and writes
{"id","ok":true} or {"id","ok":false,"code","detail"} for each, in order. The id
is null where none could be read. Blank lines are skipped.

By default null counts as absent everywhere and integers are written plainly.
--strict follows the published JSON schema to the letter instead. --lenient
takes every work id that AGH's own runtime takes.`,
		Example: `  parley agh validate --now 1776366000 < envelopes.jsonl`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o := wire.Options{Now: time.Now().Unix(), Strict: strict, LenientWorkIDs: lenient}
			if c.Flags().Changed("now") {
				o.Now = now
			}
			return a.eachEnvelope(func(_ int, data []byte) (any, error) {
				e, err := wire.Decode(data, o)
				return verdict(e, err), nil
			})
		},
	}
	c.Flags().Int64Var(&now, "now", 0, "the receiver's clock in `UNIX` seconds (default this machine's)")
	c.Flags().BoolVar(&strict, "strict", false, "follow the JSON schema to the letter")
	c.Flags().BoolVar(&lenient, "lenient", false, "take the work ids that AGH's runtime takes")
	c.MarkFlagsMutuallyExclusive("strict", "lenient")
	return c
}

type validity struct {
	ID     *string     `json:"id"`
	OK     bool        `json:"ok"`
	Code   wire.Reason `json:"code,omitempty"`
	Detail string      `json:"detail,omitempty"`
}

func verdict(e *wire.Envelope, err error) validity {
	v := validity{ID: idOf(e), OK: err == nil}
	if rejection, ok := errors.AsType[*wire.Rejection](err); ok {
		v.Code, v.Detail = rejection.Reason, rejection.Detail
	}
	return v
}

func idOf(e *wire.Envelope) *string {
	if e == nil || e.ID == "" {
		return nil
	}
	return &e.ID
}

func (a *app) aghVerify() *cobra.Command {
	var now int64
	c := &cobra.Command{
		Use:   "verify",
		Short: "Judge the proofs of AGH envelopes, one JSON line each",
		Long: `Judge the proofs of AGH envelopes: reads one a line on standard input and writes
{"id","state"} for each, in order; the state is verified, unverified or rejected,
and a rejected one has a "code". Handles and protocol agh-network/v1 are taken.
How old an envelope is counts only with --now.`,
		Example: `  parley agh verify < signed.jsonl`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o := wire.Options{Now: now, SkipFreshness: !c.Flags().Changed("now"), V1: true, Handles: true}
			return a.eachEnvelope(func(_ int, data []byte) (any, error) { return proven(data, o), nil })
		},
	}
	c.Flags().Int64Var(&now, "now", 0, "judge freshness too, at this time in `UNIX` seconds")
	return c
}

type trusted struct {
	ID    *string     `json:"id"`
	State wire.Trust  `json:"state"`
	Code  wire.Reason `json:"code,omitempty"`
}

func proven(data []byte, o wire.Options) trusted {
	e, err := wire.Decode(data, o)
	row := trusted{ID: idOf(e), State: wire.Rejected}
	var rejection *wire.Rejection
	if !errors.As(err, &rejection) {
		row.State, rejection = wire.Verify(e, data)
	}
	if rejection != nil {
		row.Code = rejection.Reason
	}
	return row
}

func (a *app) aghSign() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "sign --key FILE",
		Short: "Sign AGH envelopes, one JSON line each",
		Long: `Sign AGH envelopes: reads one a line on standard input and writes it with a
proof, in order. Its "from" is the handle of the key. Nothing but "proof" is
changed. parley agh keys new makes a key.`,
		Example: `  parley agh sign --key mason.json < unsigned.jsonl`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			key, err := keyring.Read(file)
			if err != nil {
				return err
			}
			return a.eachEnvelope(func(line int, data []byte) (any, error) {
				signed, err := key.Sign(data)
				if err != nil {
					return nil, fmt.Errorf("line %d: %w", line, err)
				}
				return json.RawMessage(signed), nil
			})
		},
	}
	c.Flags().StringVar(&file, "key", "", "`FILE` of the key")
	require(c, "key")
	return c
}

// eachEnvelope answers every line of standard input with a line of JSON. It holds one
// envelope at a time, and stops reading a line that is too long.
func (a *app) eachEnvelope(answer func(line int, data []byte) (any, error)) error {
	in, out := bufio.NewReaderSize(a.in, 64<<10), bufio.NewWriterSize(a.out, 64<<10)
	write := func(row any) error {
		if raw, ok := row.(json.RawMessage); ok {
			_, err := out.Write(append(raw, '\n'))
			return err
		}
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(row)
	}
	for number := 1; ; number++ {
		data, err := readLine(in, wire.MaxBytes+2)
		if len(bytes.TrimSpace(data)) > 0 {
			row, err := answer(number, data)
			if err == nil {
				err = write(row)
			}
			if err != nil {
				return errors.Join(err, out.Flush())
			}
		}
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil { // so that a person who types sees each answer at once
				return err
			}
		}
	}
}

// readLine reads to the end of a line, and returns at most so many bytes of it,
// without its end.
func readLine(in *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if room := most - len(line); room > 0 {
			line = append(line, part[:min(len(part), room)]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), err
	}
}
