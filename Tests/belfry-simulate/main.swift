import Foundation

// Not a line of it is asynchronous: top-level code belongs to the main actor, whose jobs the
// simulator cannot take.

Program.isolateHashing()
do {
  let options = try Options(CommandLine.arguments.dropFirst())
  exit(Program.run(options).rawValue)
} catch {
  let hint = (error as? Options.Fault)?.isOfFile ?? false ? "" : "; see script/simulate --help"
  FileHandle.standardError.write(Data("belfry-simulate: \(error)\(hint)\n".utf8))
  exit(Exit.usage.rawValue)
}
