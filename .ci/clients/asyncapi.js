// Reads an AsyncAPI document with the official parser, and fails on any warning. Prints the address
// of each channel with the action of its operation.
const path = require("path");
const { Parser, fromFile } = require("@asyncapi/parser");

// Hints of style that this document does not follow.
const styles = ["asyncapi-latest-version", "asyncapi-info-contact"];

async function main(file) {
  const { document, diagnostics } = await fromFile(new Parser(), path.resolve(file)).parse();
  const faults = diagnostics.filter((d) => !styles.includes(d.code));
  for (const d of faults) console.error(d.severity, d.code, d.path.join("."), d.message);
  if (!document || faults.length > 0) process.exit(1);
  for (const operation of document.operations().all()) {
    for (const channel of operation.channels().all()) console.log(operation.action(), channel.address());
  }
}

main(process.argv[2]).catch((error) => {
  console.error(error);
  process.exit(1);
});
