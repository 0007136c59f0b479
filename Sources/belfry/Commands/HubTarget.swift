import Foundation
import HubCore
import NotificationHubs

/// The selection of the hub for a command. All commands follow one rule, ``rule``, which is
/// implemented here.
struct HubTarget: Sendable {
  /// The rule as printed by `belfry help all`.
  static let rule = """
    The first of these that is given selects it:
      1. --connection STRING, --data DIR or --config FILE
      2. BELFRY_CONNECTION_STRING, or BELFRY_DATA
      3. the data directory in ./belfry.json, or in the file that BELFRY_CONFIG names
      4. ./belfry-data
      5. the `belfry up` that was started last; `hub create` makes ./belfry-data instead
    --hub NAME (or BELFRY_HUB) selects one of its hubs. Leave it out if there is only one, or to use
    the hub of `belfry up`.
    Commands that change something or send print the target, and stop if 2 names another hub than
    3 or 4.
    """

  /// For the pages of single commands.
  static let note = "`belfry help all` explains how the hub is selected."

  enum Location: Sendable {
    /// A hub over HTTP, on any machine.
    case connection(ConnectionString)
    /// A store on this machine, with the server that uses it, if there is one.
    case directory(DataDirectory)
  }

  /// The source of the selection.
  enum Origin: Sendable, Equatable, CustomStringConvertible {
    case option(String)
    case variable(String)
    case file(String)
    /// The data directory of the working directory.
    case here
    case up

    var description: String {
      switch self {
      case .option(let name), .variable(let name), .file(let name): name
      case .here: "./" + HubTarget.standardData
      case .up: "the running `belfry up`"
      }
    }

    var isOption: Bool { if case .option = self { true } else { false } }
  }

  static let standardData = "belfry-data"

  let location: Location
  let origin: Origin

  /// - Returns: `nil` if nothing names a hub.
  static func find(_ location: HubLocation, environment: [String: String]) throws -> HubTarget? {
    let isOnThisMachine = location.data != nil || location.config != nil
    if let text = location.connection {
      if isOnThisMachine {
        throw UsageError("--connection goes without --data and --config")
      }
      return HubTarget(location: try connection(text), origin: .option("--connection"))
    }
    let variable = "BELFRY_CONNECTION_STRING"
    if !isOnThisMachine, let text = environment[variable] {
      return HubTarget(location: try connection(text), origin: .variable(variable))
    }
    let configuration = try location.configuration(environment)
    let path = configuration.text(.data) ?? standardData
    func directory(_ origin: Origin) -> HubTarget {
      HubTarget(location: .directory(DataDirectory(path: Self.full(path))), origin: origin)
    }
    switch configuration.entries[Setting.data.key]?.origin {
    case .flag(let name): return directory(.option(name))
    case .variable(let name): return directory(.variable(name))
    case .file(let file, _):
      return directory(
        location.config != nil
          ? .option("--config") : file == "belfry.json" ? .file(file) : .variable("BELFRY_CONFIG"))
    case .standard, nil: break
    }
    if location.config != nil { return directory(.option("--config")) }
    switch configuration.entries[Setting.database.key]?.origin {
    case .flag(let name): return directory(.option(name))
    case .variable(let name): return directory(.variable(name))
    case .file(let file, _): return directory(.file(file))
    case .standard, nil: break
    }
    if DataDirectory(path: Self.full(path)).isUsed { return directory(.here) }
    return RunningUp.last(environment).map {
      HubTarget(location: .directory(DataDirectory(path: $0.data)), origin: .up)
    }
  }

  private static func connection(_ text: String) throws -> Location {
    do { return .connection(try ConnectionString(text)) } catch { throw UsageError("\(error)") }
  }

  private static func full(_ path: String) -> String {
    URL(fileURLWithPath: path).standardizedFileURL.path
  }

  /// Refuses a change if the environment names another hub than the data directory in the working
  /// directory, because a variable is easily forgotten.
  func checkIsHere(_ environment: [String: String]) throws {
    guard case .variable(let name) = origin else { return }
    let bare = environment.filter { !$0.key.hasPrefix("BELFRY_") }
    guard let local = try Self.find(HubLocation(), environment: bare), local.origin != .up,
      case .directory(let here) = local.location
    else { return }
    let choice: String
    switch location {
    case .directory(let meant):
      if meant.path == here.path { return }
      choice = "--data \(meant.path)"
    case .connection(let meant):
      if here.address.flatMap({ ServiceEndpoint(parsing: $0) })?.url == meant.endpoint.url {
        return
      }
      choice = "--connection \"$\(name)\""
    }
    throw UsageError(
      "\(name) names \(shown), but this directory has a hub of its own, in \(here.path). Say which "
        + "is meant: \(choice), or --data \(here.path)")
  }

  /// The location, without secrets.
  var shown: String {
    switch location {
    case .connection(let connection): connection.endpoint.url
    case .directory(let directory): directory.path
    }
  }

  /// Prints the location that a command uses: always before a change, and otherwise unless an
  /// option named it.
  ///
  /// - Parameters:
  ///   - hub: The hub; `nil` for all hubs there.
  ///   - location: The location, if ``shown`` is not complete.
  func announce(
    changes: Bool, hub: String?, at location: String? = nil, in context: CommandContext
  ) {
    guard changes || !origin.isOption else { return }
    context.note(
      (changes ? "to " : "") + (hub.map { "hub \($0)" } ?? (changes ? "the namespace" : "hubs"))
        + " at \(location ?? shown), from \(origin)")
  }
}
