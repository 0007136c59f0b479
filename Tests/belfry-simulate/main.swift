import Foundation

// Not a line of it is asynchronous: top-level code belongs to the main actor, whose jobs the
// simulator cannot take.

Program.isolateHashing()
do {
  let options = try Options(CommandLine.arguments.dropFirst())
  exit(Program.run(options).rawValue)
} catch {
  FileHandle.standardError.write(
    Data("belfry-simulate: \(error); see belfry-simulate --help\n".utf8))
  exit(Exit.usage.rawValue)
}
