import Foundation

@main
struct Belfry {
  static func main() async {
    // A reader that has gone away (`belfry … | head`, a closed socket) is an error to handle
    // where it is written to, not a reason to die.
    signal(SIGPIPE, SIG_IGN)
    let words = Array(CommandLine.arguments.dropFirst())
    exit(await BelfryCommandLine.run(words, in: CommandContext()).rawValue)
  }
}
