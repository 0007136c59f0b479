import Foundation

/// The `belfry up` that this user has running, so that commands in another terminal find it without
/// being told. With several, the one started last.
///
/// Kept in `~/.belfry/up.json`, readable by this user only; `BELFRY_HOME` names another directory.
struct RunningUp: Codable, Sendable {
  /// Its data directory, which holds its address and keys.
  let data: String
  /// The control URL of its emulator.
  let control: String
  /// The URL of its app backend.
  let backend: String

  private static func file(_ environment: [String: String]) -> URL {
    let home =
      environment["BELFRY_HOME"].map { URL(fileURLWithPath: $0) }
      ?? FileManager.default.homeDirectoryForCurrentUser.appending(path: ".belfry")
    return home.appending(path: "up.json")
  }

  /// - Returns: `nil` when none runs.
  static func find(_ environment: [String: String]) -> RunningUp? {
    guard let data = try? Data(contentsOf: file(environment)),
      let found = try? JSONDecoder().decode(RunningUp.self, from: data),
      DataDirectory(path: found.data).isServed
    else { return nil }
    return found
  }

  /// Makes this the one that commands find. Not being able to is no reason not to run.
  func publish(_ environment: [String: String]) {
    let file = Self.file(environment)
    try? FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(), withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o700])
    try? JSONEncoder().encode(self).write(to: file, options: .atomic)
  }

  /// Takes the note away again, unless another has taken its place.
  func withdraw(_ environment: [String: String]) {
    let file = Self.file(environment)
    guard let data = try? Data(contentsOf: file),
      let present = try? JSONDecoder().decode(RunningUp.self, from: data),
      present.data == self.data
    else { return }
    try? FileManager.default.removeItem(at: file)
  }
}
