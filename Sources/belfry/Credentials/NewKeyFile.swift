import Cryptography
import Foundation
import HubCore

/// A private key's file that did not exist before, readable by its owner alone.
struct NewKeyFile {
  private let path: String

  /// Makes the file at once, empty, so that nothing is kept that could not be written out.
  /// - Throws: ``CommandFailure`` when it exists, or cannot be made.
  init(_ path: String) throws(CommandFailure) {
    self.path = path
    let file = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600)
    guard file >= 0 else {
      let code = errno
      throw CommandFailure(
        code == EEXIST
          ? "\(path) exists, and a key is not written over; to use the key that it holds, leave out "
            + "--generate"
          : "\(path) cannot be made: \(String(cString: strerror(code)))", exitCode: .usage)
    }
    close(file)
  }

  func write(_ text: String) throws(CommandFailure) {
    do {
      let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
      try handle.write(contentsOf: Data(text.utf8))
      try handle.close()
    } catch {
      throw CommandFailure("\(path) cannot be written: \(Configuration.reason(error))")
    }
  }

  func remove() { unlink(path) }
}
