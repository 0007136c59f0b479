import Foundation
import NotificationHubs

/// A `belfry up` run by this user, so that commands in another terminal find it without options.
///
/// Each one is recorded in `~/.belfry/up`, readable only by this user. `BELFRY_HOME` sets another
/// directory in place of `~/.belfry`, and so does `XDG_STATE_HOME` (`belfry` in it).
struct RunningUp: Codable, Sendable {
  /// Its data directory, which contains its address and keys.
  let data: String
  /// The URL of its hub.
  let hub: String
  /// The hub that it was started with, which commands use if there are several.
  var hubName: String?
  /// The control URL of its emulator.
  let control: String
  /// The URL of its app backend.
  let backend: String
  /// The URL of its portal, with the key by which that recognizes the browser.
  var portal: String?
  var startedAt = Date()

  static func folder(_ environment: [String: String]) -> URL {
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

  /// The page by which `belfry open` shows a browser the way to a portal. It goes with the next
  /// `belfry up` that ends.
  static func portalPage(in folder: URL) -> URL { folder.appending(path: "portal.html") }

  /// The running ones, the most recently started last.
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

  /// The one that commands use if nothing names a hub.
  static func last(_ environment: [String: String]) -> RunningUp? { all(environment).last }

  /// The one that occupies a port.
  /// - Parameter failure: The message of an ``HTTPListenerError``, which names the port.
  static func holder(of failure: String, _ environment: [String: String]) -> RunningUp? {
    guard let match = failure.firstMatch(of: /port ([0-9]+):/), let port = Int(match.1) else {
      return nil
    }
    return all(environment).last { up in
      [up.hub, up.control, up.backend].contains { URL(string: $0)?.port == port }
    }
  }

  /// The one that a hub belongs to; `nil` for any other hub.
  static func of(_ target: HubTarget, _ environment: [String: String]) -> RunningUp? {
    all(environment).last { up in
      switch target.location {
      case .directory(let directory): up.data == directory.path
      case .connection(let connection): up.hub == connection.endpoint.url
      }
    }
  }

  /// Records it so that commands find it. Failing to do so is not an error.
  ///
  /// - Returns: The record, to be removed at the end.
  func publish(_ environment: [String: String]) -> URL {
    // Records of processes that were killed.
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
