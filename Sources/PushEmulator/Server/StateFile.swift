import Foundation

/// The emulator's state file: read at the start, written when apps or devices have changed and at
/// the end.
struct StateFile: Sendable {
  let path: String

  /// Fills a fresh state from the file, if there is one.
  func load(into state: inout EmulatorState) throws(EmulatorError) {
    guard let data = try PrivateFile.read(path) else { return }
    do {
      try JSONDecoder().decode(Snapshot.self, from: data).restore(into: &state)
    } catch let damage as Snapshot.Damage {
      throw .file(path: path, reason: damage.reason)
    } catch {
      throw .file(
        path: path,
        reason: "is no state of the emulator (\(error)); move it away to begin with nothing")
    }
  }

  func save(_ state: EmulatorState) throws(EmulatorError) {
    let data: Data
    do {
      data = try JSONEncoder().encode(Snapshot(state))
    } catch {
      throw .file(path: path, reason: "cannot be encoded: \(error)")
    }
    try PrivateFile.write(data, to: path)
  }
}
