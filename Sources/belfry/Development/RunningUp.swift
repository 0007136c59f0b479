import Foundation
import NotificationHubs

/// A `belfry up` that this user has running, so that commands in another terminal find it without
/// being told.
///
/// Each keeps a note of its own in `~/.belfry/up`, readable by this user only. `BELFRY_HOME` names
/// another directory than `~/.belfry`, and so does `XDG_STATE_HOME` (`belfry` in it).
struct RunningUp: Codable, Sendable {
  /// Its data directory, which holds its address and keys.
  let data: String
  /// The URL of its hub.
  let hub: String
  /// The hub that it was started with; commands take it where several are there.
  var hubName: String?
  /// The control URL of its emulator.
  let control: String
  /// The URL of its app backend.
  let backend: String
  var startedAt = Date()

  private static func folder(_ environment: [String: String]) -> URL {
    let home: URL
    if let path = environment["BELFRY_HOME"] {
      home = URL(fileURLWithPath: path)
    } else if let path = environment["XDG_STATE_HOME"], path.hasPrefix("/") {
      home = URL(fileURLWithPath: path).appending(path: "belfry")
    } else if let path = environment["HOME"], path.hasPrefix("/") {
      home = URL(fileURLWithPath: path).appending(path: ".belfry")
    } else {
      home = FileManager.default.homeDirectoryForCurrentUser.appending(path: ".belfry")
    }
    return home.appending(path: "up")
  }

  /// Those that run, the one that was started last at the end.
  static func all(_ environment: [String: String]) -> [RunningUp] {
    notes(environment).map(\.up).filter { DataDirectory(path: $0.data).isServed }
      .sorted { $0.startedAt < $1.startedAt }
  }

  private static func notes(_ environment: [String: String]) -> [(file: URL, up: RunningUp)] {
    let files = try? FileManager.default.contentsOfDirectory(
      at: folder(environment), includingPropertiesForKeys: nil)
    return (files ?? []).compactMap { file in
      guard let data = try? Data(contentsOf: file),
        let up = try? JSONDecoder().decode(RunningUp.self, from: data)
      else { return nil }
      return (file, up)
    }
  }

  /// The one that commands use when nothing names a hub.
  static func last(_ environment: [String: String]) -> RunningUp? { all(environment).last }

  /// The one that has a port which could not be listened on.
  /// - Parameter failure: Names the port as ``HTTPListenerError`` does.
  static func holder(of failure: String, _ environment: [String: String]) -> RunningUp? {
    guard let match = failure.firstMatch(of: /port ([0-9]+):/), let port = Int(match.1) else {
      return nil
    }
    return all(environment).last { up in
      [up.hub, up.control, up.backend].contains { URL(string: $0)?.port == port }
    }
  }

  /// The one that a hub belongs to; `nil` for a hub of another kind.
  static func of(_ target: HubTarget, _ environment: [String: String]) -> RunningUp? {
    all(environment).last { up in
      switch target.place {
      case .directory(let directory): up.data == directory.path
      case .connection(let connection): up.hub == connection.endpoint.url
      }
    }
  }

  /// Lets commands find it. Not being able to is no reason not to run.
  ///
  /// - Returns: The note, to be removed at the end.
  func publish(_ environment: [String: String]) -> URL {
    // What others have left that were killed.
    for note in Self.notes(environment) where !DataDirectory(path: note.up.data).isServed {
      try? FileManager.default.removeItem(at: note.file)
    }
    let folder = Self.folder(environment)
    try? FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let file = folder.appending(path: UUID().uuidString.lowercased() + ".json")
    try? JSONEncoder().encode(self).write(to: file, options: .atomic)
    return file
  }
}
