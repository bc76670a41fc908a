# What went wrong in a run of go test -json, in few lines: what did not compile; each failed test
# with the first lines of its output, without those of its processes; and the last lines of a
# package that failed without a failed test.
def said(of): [.[] | select(.Action == "output" and of) | .Output[:300] | rtrimstr("\n")];
def failed: [.[] | select(.Action == "fail")];
(failed | map(select(.Test))) as $tests
| ((failed | map(select(.Test | not).Package)) - ($tests | map(.Package))) as $packages
| (.[] | select(.Action == "build-output") | .Output | rtrimstr("\n")),
  ($tests[] as $t
   | "\($t.Package) \($t.Test)",
     (said(.Package == $t.Package and .Test == $t.Test)
      | map(select(test("^\\s*(===|---|\\{\")") | not)) | .[:12][])),
  ($packages[] as $p | $p, said(.Package == $p)[-40:][])
