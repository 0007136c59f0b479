import Cryptography
package import Foundation

/// Reads a file line by line from an offset, with only a piece of it in memory.
package struct LineReader {
  /// A line without its end.
  package enum Line: Sendable {
    case text([UInt8])
    /// A line longer than the limit, whose text was skipped.
    case tooLong
  }

  private let file: FileHandle
  private let limit: Int
  private var buffer: [UInt8] = []
  private var position = 0
  /// The offset of the next line, in bytes from the beginning of the file.
  package private(set) var offset: Int64

  /// - Throws: An error if the file cannot be opened or has no such offset.
  init(path: String, offset: Int64, limit: Int) throws {
    guard let file = FileHandle(forReadingAtPath: path) else {
      throw JobFault("the working file of the job is gone")
    }
    try file.seek(toOffset: UInt64(max(0, offset)))
    self.file = file
    self.offset = offset
    self.limit = limit
  }

  /// Reads an open file, such as standard input, from its current position.
  package init(_ file: FileHandle, limit: Int) {
    self.file = file
    self.limit = limit
    offset = 0
  }

  /// Reads the next line; `nil` at the end. Text after the last line end counts as a line if it is
  /// not empty.
  package mutating func next() throws -> Line? {
    var length = 0
    var isTooLong = false
    while true {
      if let end = buffer[(position + length)...].firstIndex(of: UInt8(ascii: "\n")) {
        let line = buffer[position..<end]
        offset += Int64(line.count + 1)
        position = end + 1
        return isTooLong || line.count > limit ? .tooLong : .text(Self.trimmed(line))
      }
      length = buffer.count - position
      if length > limit {
        // The beginning of such a line is not used.
        isTooLong = true
        offset += Int64(length)
        position = buffer.count
        length = 0
      }
      buffer.removeSubrange(..<position)
      position = 0
      guard let piece = try file.read(upToCount: 64 << 10), !piece.isEmpty else {
        let rest = buffer
        buffer = []
        offset += Int64(rest.count)
        if isTooLong { return .tooLong }
        return rest.isEmpty ? nil : .text(Self.trimmed(rest[...]))
      }
      buffer += piece
    }
  }

  private static func trimmed(_ line: ArraySlice<UInt8>) -> [UInt8] {
    var line = line
    if line.starts(with: [0xEF, 0xBB, 0xBF]) { line = line.dropFirst(3) }
    while let last = line.last, last <= 0x20 { line.removeLast() }
    while let first = line.first, first <= 0x20 { line.removeFirst() }
    return Array(line)
  }
}

/// A working file that grows at its end, and can be truncated to a checkpoint.
struct AppendFile {
  private let file: FileHandle
  private(set) var size: Int64

  init(path: String, size: Int64) throws {
    if !FileManager.default.fileExists(atPath: path) {
      _ = FileHandle.newPrivate(path)
    }
    guard let file = FileHandle(forUpdatingAtPath: path) else {
      throw JobFault("the working file of the job cannot be opened")
    }
    guard try file.seekToEnd() >= UInt64(max(0, size)) else {
      throw JobFault("the working file of the job has lost its end")
    }
    try file.truncate(atOffset: UInt64(max(0, size)))
    self.file = file
    self.size = size
  }

  mutating func append(_ bytes: [UInt8]) throws {
    guard !bytes.isEmpty else { return }
    try file.write(contentsOf: Data(bytes))
    size += Int64(bytes.count)
  }

  /// Returns once everything is on disk.
  func synchronize() async throws {
    let descriptor = file.fileDescriptor
    try await JobFiles.blocking { _ in
      guard fsync(descriptor) == 0 else {
        throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
      }
    }
    // Its deinit closes the descriptor.
    withExtendedLifetime(file) {}
  }
}

extension String {
  /// An XML document on one line: line ends in texts become character references, which are
  /// equivalent. CDATA has no references, so the section is closed around each of them.
  package var singleLine: String {
    guard utf8.contains(10) || utf8.contains(13) else { return self }
    var out = ""
    var rest = self[...]
    while let start = rest.firstRange(of: "<![CDATA[") {
      out += Self.referenced(rest[..<start.upperBound], inData: false)
      rest = rest[start.upperBound...]
      let end = rest.firstRange(of: "]]>")?.lowerBound ?? rest.endIndex
      out += Self.referenced(rest[..<end], inData: true)
      rest = rest[end...]
    }
    return out + Self.referenced(rest, inData: false)
  }

  private static func referenced(_ text: Substring, inData: Bool) -> String {
    let (open, close) = inData ? ("]]>", "<![CDATA[") : ("", "")
    var out = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\n": out += "\(open)&#xA;\(close)"
      case "\r": out += "\(open)&#xD;\(close)"
      default: out.unicodeScalars.append(scalar)
      }
    }
    return out
  }
}
