// The tool: an object named after the interface, with a function for each function of the contract.
//
// A function returns the success value of a `result`, and throws its `err`. QuickJS implements only the language: no files,
// no network, no require.
export const tools = {
  CAMEL(name) {
    if (name === "") throw "the name is empty";
    return `hello, ${name}`;
  },
};
