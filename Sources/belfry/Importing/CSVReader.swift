import Foundation

/// Reads comma-separated values (RFC 4180) record by record, with only a piece of the file in
/// memory. Records end with LF, CRLF or CR, and quoted fields may contain all of them.
struct CSVReader {
  struct Record: Sendable {
    enum Content: Sendable {
      case fields([String])
      /// The fault of a record without usable fields.
      case fault(String)
    }

    /// The number of its first line, from 1.
    let line: Int
    /// The record as in the file, without its end.
    let text: [UInt8]
    let content: Content
  }

  private let file: FileHandle
  /// The maximum length of a record, in bytes.
  private let limit: Int
  private var buffer: [UInt8] = []
  private var position = 0
  private var isComplete = false
  private var line = 1
  /// The offset of the next record, in bytes.
  private(set) var offset: Int64 = 0

  init(_ file: FileHandle, limit: Int) {
    (self.file, self.limit) = (file, limit)
  }

  /// Checks that a file is text in UTF-8, and skips its byte order mark. Called once, before the
  /// first record.
  /// - Returns: The first byte of the text; `nil` for an empty file.
  /// - Throws: ``CommandFailure`` for a file of another form.
  mutating func begin(_ name: String) throws -> UInt8? {
    try fill()
    try Self.checkText(buffer.prefix(1024), of: name)
    advance(to: buffer.withoutByteOrderMark.startIndex)
    return buffer[position...].first { $0 > 0x20 }
  }

  /// Checks the first bytes of a file.
  /// - Throws: ``CommandFailure`` if they are not those of a text in UTF-8.
  static func checkText(_ start: some Collection<UInt8>, of name: String) throws(CommandFailure) {
    let fault: String
    if start.starts(with: [0x1F, 0x8B]) {
      fault = "is compressed; decompress it first, with gunzip"
    } else if start.starts(with: Array("PK".utf8) + [3, 4]) {
      fault = "is a ZIP archive or a spreadsheet; export it as CSV in UTF-8"
    } else if start.starts(with: [0xFF, 0xFE]) || start.starts(with: [0xFE, 0xFF])
      || isEverySecondZero(start)
    {
      fault =
        "is not text in UTF-8 but probably in UTF-16; convert it, with iconv -f UTF-16 -t UTF-8"
    } else if start.contains(0) {
      fault = "is not text: give a file with a device on each line, or a CSV file"
    } else {
      return
    }
    throw CommandFailure("\(name) \(fault)", exitCode: .usage)
  }

  /// Whether it looks like Latin letters in UTF-16.
  private static func isEverySecondZero(_ bytes: some Collection<UInt8>) -> Bool {
    bytes.contains { $0 != 0 }
      && [0, 1].contains { parity in
        zip(0..., bytes).allSatisfy { $0 % 2 != parity || $1 == 0 }
      }
  }

  /// Reads the next record; `nil` at the end.
  ///
  /// After a record that is too long or whose quotation marks are wrong, reading resumes at the line
  /// after its first one, so that one wrong mark does not hide what follows.
  mutating func next() throws -> Record? {
    try fill()
    guard position < buffer.count else { return nil }
    let start = position
    let number = line
    let (fields, end) = parse()
    switch fields {
    case .success(let bytes):
      let text = Array(buffer[start..<end])
      advance(to: afterLineEnd(end))
      let decoded = bytes.compactMap { String(bytes: $0, encoding: .utf8) }
      return Record(
        line: number, text: text,
        content: decoded.count == bytes.count
          ? .fields(decoded) : .fault("it is not text in UTF-8"))
    case .failure(let fault):
      let text = try skipLine()
      return Record(line: number, text: text, content: .fault(fault.text))
    }
  }

  private struct Fault: Error { let text: String }

  /// Parses the record at the position.
  /// - Returns: Its fields, and the index of its end.
  private func parse() -> (Result<[[UInt8]], Fault>, end: Int) {
    var fields: [[UInt8]] = []
    var field: [UInt8] = []
    var index = position
    var isQuoted = false
    var isClosed = false
    let last = min(buffer.count, position + limit)
    while true {
      guard index < last else {
        guard index == buffer.count, isComplete else {
          let fault =
            isQuoted
            ? "a quotation mark does not end within \(limit) bytes"
            : "it is longer than \(limit) bytes"
          return (.failure(Fault(text: fault)), index)
        }
        if isQuoted { return (.failure(Fault(text: "a quotation mark does not end")), index) }
        return (.success(fields + [field]), index)
      }
      let byte = buffer[index]
      if isQuoted {
        if byte != UInt8(ascii: "\"") {
          field.append(byte)
        } else if index + 1 < buffer.count, buffer[index + 1] == UInt8(ascii: "\"") {
          field.append(byte)
          index += 1
        } else {
          (isQuoted, isClosed) = (false, true)
        }
      } else {
        switch byte {
        case UInt8(ascii: "\n"), UInt8(ascii: "\r"): return (.success(fields + [field]), index)
        case UInt8(ascii: ","):
          fields.append(field)
          field = []
          isClosed = false
        case UInt8(ascii: "\"") where field.isEmpty && !isClosed: isQuoted = true
        case _ where isClosed:
          return (.failure(Fault(text: "there is text after a closing quotation mark")), index)
        default: field.append(byte)
        }
      }
      index += 1
    }
  }

  /// Skips the rest of the line, however long it is.
  /// - Returns: Its text, without what exceeds the limit.
  private mutating func skipLine() throws -> [UInt8] {
    var text: [UInt8] = []
    while true {
      let rest = buffer[position...]
      let end = rest.firstIndex { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
      text += rest[..<(end ?? rest.endIndex)].prefix(limit - text.count)
      advance(to: end.map(afterLineEnd) ?? rest.endIndex)
      if end != nil || isComplete { return text }
      try fill()
    }
  }

  /// The index after the line end at an index.
  private func afterLineEnd(_ index: Int) -> Int {
    guard index < buffer.count else { return index }
    let isPair =
      buffer[index] == UInt8(ascii: "\r") && index + 1 < buffer.count
      && buffer[index + 1] == UInt8(ascii: "\n")
    return index + (isPair ? 2 : 1)
  }

  /// Moves the position, and counts the lines before it.
  private mutating func advance(to index: Int) {
    var previous: UInt8 = 0
    for byte in buffer[position..<index] {
      if byte == UInt8(ascii: "\r") || byte == UInt8(ascii: "\n") && previous != UInt8(ascii: "\r")
      {
        line += 1
      }
      previous = byte
    }
    offset += Int64(index - position)
    position = index
  }

  /// Reads until the buffer has a record of the maximum length and its end, or all that is left.
  private mutating func fill() throws {
    guard !isComplete, buffer.count - position < limit + 2 else { return }
    buffer.removeSubrange(..<position)
    position = 0
    while buffer.count < 2 * (limit + 2) {
      guard let piece = try file.read(upToCount: 64 << 10), !piece.isEmpty else {
        isComplete = true
        return
      }
      buffer += piece
    }
  }
}

extension [UInt8] {
  /// The text without the mark that some texts in UTF-8 begin with.
  var withoutByteOrderMark: ArraySlice<UInt8> {
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    return starts(with: mark) ? dropFirst(mark.count) : self[...]
  }
}
