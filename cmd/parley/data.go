package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/repair"
)

func (a *app) data() *cobra.Command {
	return group("data", "Check, describe and salvage data folders that no hub uses",
		a.dataCheck(), a.dataStats(), a.dataSalvage())
}

func (a *app) dataCheck() *cobra.Command {
	return &cobra.Command{
		Use:     "check DIR",
		Short:   "Verify every record of a data folder, without writing to it",
		Example: "  parley data check ./parley-data",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			report, shards, err := a.checkFolder(args[0])
			if err != nil {
				return err
			}
			data := struct {
				*repair.CheckReport
				OK     bool `json:"ok"`
				Shards int  `json:"shards,omitempty"`
			}{report, report.OK(), shards}
			err = a.print(data, func(w io.Writer) error {
				for _, cut := range report.Cuts {
					fmt.Fprintln(w, "cut off:", cut)
				}
				for _, problem := range report.Problems {
					fmt.Fprintln(w, "damaged:", problem)
				}
				of := ""
				if shards > 0 {
					of = fmt.Sprintf(" of %d shards", shards)
				}
				_, err := fmt.Fprintf(w, "%s: %d records in %d logs%s verified, %d problems\n", args[0], report.Records, report.Logs, of, len(report.Problems))
				return err
			})
			if err == nil && !report.OK() && shards > 0 {
				return fmt.Errorf("a copy in %s is damaged; stop the node, remove the folder of that copy, and start the node again: it takes the copy from another", args[0])
			}
			if err == nil && !report.OK() {
				err = fmt.Errorf("%s is damaged; restore a backup, or copy what is readable with parley data salvage %s --to NEW", args[0], args[0])
			}
			return err
		},
	}
}

// checkFolder verifies a data folder. For the folder of a cluster's node it verifies
// all copies and returns their number.
func (a *app) checkFolder(dir string) (report *repair.CheckReport, shards int, err error) {
	tell, end := a.progress()
	defer end()
	if !ofNode(dir) {
		report, err = repair.Check(dir, disk.Options{}, tell)
		return report, 0, err
	}
	if shards, err = copiesIn(dir); err != nil {
		return nil, 0, err
	}
	report = &repair.CheckReport{}
	for shard := range shards {
		one, err := repair.Check(cluster.Folder(disk.Options{}, dir, shard), disk.Options{}, tell)
		if err != nil {
			return nil, 0, fmt.Errorf("the copy of shard %d: %w", shard, err)
		}
		report.Records, report.Logs = report.Records+one.Records, report.Logs+one.Logs
		report.Cuts, report.Problems = append(report.Cuts, one.Cuts...), append(report.Problems, one.Problems...)
	}
	return report, shards, nil
}

func (a *app) dataStats() *cobra.Command {
	return &cobra.Command{
		Use:     "stats DIR",
		Short:   "Describe a data folder: logs, records, sizes",
		Example: "  parley data stats ./parley-data",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkOneStore(args[0]); err != nil {
				return err
			}
			tell, end := a.progress()
			stats, err := repair.ReadStats(args[0], disk.Options{}, tell)
			end()
			if err != nil {
				return err
			}
			return a.print(stats, func(w io.Writer) error {
				return table(w, func(w io.Writer) {
					fmt.Fprintf(w, "format\t%d\nepoch\t%d\noffset\t%d\nclosed cleanly\t%t\n", stats.Format, stats.Epoch, stats.Offset, stats.Clean)
					fmt.Fprintf(w, "logs\t%d\nrecords\t%d\nbytes on disk\t%d\n", stats.Logs, stats.Records, stats.Bytes.Total)
					for _, family := range slices.Sorted(maps.Keys(stats.Families)) {
						fmt.Fprintf(w, "logs of %s\t%d\n", family, stats.Families[family])
					}
				})
			})
		},
	}
}

func (a *app) dataSalvage() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "salvage DIR --to NEW",
		Short: "Copy everything readable of a damaged data folder to a new one",
		Long: `Copy everything readable of a damaged data folder to a new one, in a new epoch,
and list what is not readable. The damaged folder is not written to. Access keys
are copied as everything else is; a file keys.json of an older version is not: put
it into the new folder.`,
		Example: "  parley data salvage ./parley-data --to ./salvaged",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkOneStore(args[0]); err != nil {
				return err
			}
			tell, end := a.progress()
			report, err := repair.Salvage(args[0], to, disk.Options{}, tell)
			end()
			if err != nil {
				return err
			}
			return a.print(report, func(w io.Writer) error {
				for _, part := range report.Unreadable {
					fmt.Fprintln(w, "not readable:", part)
				}
				for _, part := range report.Lost {
					fmt.Fprintf(w, "lost: %s, records %d to %d\n", part.Log, part.From, part.To)
				}
				_, err := fmt.Fprintf(w, "%s: %d records in %d logs salvaged; %d stretches lost, %d records set apart\n", to, report.Records, report.Logs, len(report.Lost), report.Apart)
				return err
			})
		},
	}
	c.Flags().StringVar(&to, "to", "", "folder to make; it must not exist")
	require(c, "to")
	return c
}
