import Foundation

/// Files that hold keys: written whole or not at all, readable by their owner only.
enum PrivateFile {
  static func read(_ path: String) throws(EmulatorError) -> Data? {
    guard FileManager.default.fileExists(atPath: path) else { return nil }
    do {
      return try Data(contentsOf: URL(fileURLWithPath: path))
    } catch {
      throw .file(path: path, reason: "cannot be read: \(error.localizedDescription)")
    }
  }

  static func write(_ data: Data, to path: String) throws(EmulatorError) {
    let temporary = path + ".new"
    do {
      try FileManager.default.createDirectory(
        at: URL(fileURLWithPath: path).deletingLastPathComponent(),
        withIntermediateDirectories: true)
    } catch {
      throw .file(path: path, reason: "its folder cannot be made: \(error.localizedDescription)")
    }
    guard
      FileManager.default.createFile(
        atPath: temporary, contents: data, attributes: [.posixPermissions: 0o600]),
      rename(temporary, path) == 0
    else {
      throw .file(path: path, reason: "cannot be written: \(String(cString: strerror(errno)))")
    }
  }
}
