import Cryptography
import Foundation
import HubStorage
import SecurePushBackend
import Wire

/// The header of a backup, in front of its contents.
struct BackupHeader: Codable, Equatable {
  struct Entry: Codable, Equatable {
    let part: BackupPart
    /// The size in bytes.
    let size: Int64
    /// The hash as 64 hexadecimal digits.
    let sha256: String
    /// The schema version of a database.
    var schema: Int?
  }

  /// The time of the backup, in ISO 8601.
  let made: String
  /// The version of belfry that created it.
  let belfry: String
  let entries: [Entry]

  var size: Int64 { entries.reduce(0) { $0 + $1.size } }
  /// The key that opens the sealed values of the hub, or of the app backend if there is no hub.
  var key: BackupPart { entry(.hub) == nil ? .backendKey : .masterKey }
  func entry(_ part: BackupPart) -> Entry? { entries.first { $0.part == part } }

  /// - Throws: ``CommandFailure`` for a header that no belfry writes, or that only a newer one can
  ///   read.
  fileprivate func check() throws {
    guard Set(entries.map(\.part)).count == entries.count,
      [made, belfry].allSatisfy({ $0.utf8.count <= 40 && $0 == $0.harmless }),
      entries.contains(where: \.part.isDatabase),
      entries.allSatisfy({ (0...1 << 50).contains($0.size) && $0.sha256.count == 64 })
    else { throw BackupFile.damaged("it says of itself what cannot be") }
    for (part, known) in [
      (BackupPart.hub, StoreFile.newestSchema), (.backend, BackendStore.newestSchema),
    ] {
      guard let schema = entry(part)?.schema, schema > known else { continue }
      throw CommandFailure(
        "the backup holds a \(part.rawValue) of schema version \(schema), made by belfry \(belfry); this "
          + "belfry knows up to \(known): use a newer belfry", exitCode: .usage)
    }
  }
}

/// The format of a backup: 32 bytes of preamble, then a body. The body consists of the length of
/// the header (4 bytes, big-endian), the header as JSON, the SHA-256 of all that, and the parts one
/// after another.
///
/// With a password the body is split into pieces of 1 MiB, each sealed with AES-256-GCM under a key
/// that scrypt derives from the password and the salt in the preamble. The nonce of a piece
/// contains its number and whether it is the last, so that none can be omitted, moved or cut off
/// (the STREAM construction, as in age).
/// - SeeAlso: <https://eprint.iacr.org/2015/189>
enum BackupFile {
  static let magic = Array("BelfryBk".utf8)
  static let version: UInt8 = 1
  static let frontCount = 32
  static let piece = 1 << 20
  static let headerLimit = 1 << 16
  /// 128 MiB and about 0.4 seconds per guess.
  static let standardCost = 17

  /// The preamble: magic, version, whether it is sealed, the logarithm of scrypt's cost, a zero,
  /// the salt, zeros.
  static func front(salt: [UInt8]?, cost: Int) -> [UInt8] {
    var front = magic + [version, salt == nil ? 0 : 1, salt == nil ? 0 : UInt8(cost), 0]
    front += salt ?? []
    return front + [UInt8](repeating: 0, count: frontCount - front.count)
  }

  static func nonce(_ number: UInt64, isLast: Bool) -> [UInt8] {
    [0, 0, 0] + (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
      + [isLast ? 1 : 0]
  }

  static func damaged(_ what: String) -> CommandFailure {
    CommandFailure("the backup is damaged: \(what). Take another copy of it; nothing was changed")
  }
}

/// Writes a backup sequentially.
final class BackupWriter {
  private let output: OutputFile
  private let front: [UInt8]
  /// The key; `nil` without a password.
  private let key: [UInt8]?
  private var waiting: [UInt8] = []
  private var number: UInt64 = 0

  init(
    _ header: BackupHeader, to output: OutputFile, password: String?,
    cost: Int = BackupFile.standardCost
  ) throws {
    self.output = output
    let salt = try password.map { _ in try SecureRandom.bytes(16) }
    key = try password.map { try PasswordHash.key(from: $0, salt: salt ?? [], cost: cost) }
    front = BackupFile.front(salt: salt, cost: cost)
    try output.write(Data(front))
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let json = Array(try encoder.encode(header))
    let length = (0..<4).map { UInt8(truncatingIfNeeded: json.count >> (24 - 8 * $0)) }
    try write(length + json + Digest.sha256(front + length + json))
  }

  func write(_ bytes: [UInt8]) throws {
    guard key != nil else { return try output.write(Data(bytes)) }
    waiting += bytes
    // One piece is kept back, since only the end shows which is the last.
    while waiting.count > BackupFile.piece {
      try seal(Array(waiting.prefix(BackupFile.piece)), isLast: false)
      waiting.removeFirst(BackupFile.piece)
    }
  }

  func finish() throws {
    if key != nil { try seal(waiting, isLast: true) }
    try output.finish()
  }

  private func seal(_ piece: [UInt8], isLast: Bool) throws {
    guard let key else { return }
    let sealed = try AuthenticatedCipher.aes256GCM.seal(
      piece, key: key, nonce: BackupFile.nonce(number, isLast: isLast), associated: front)
    try output.write(Data(sealed))
    number += 1
  }
}

/// Reads a backup; no content of the file can cause a trap, and memory stays bounded.
final class BackupReader {
  let header: BackupHeader
  private let source: Source

  /// Reads the header.
  /// - Parameters:
  ///   - password: Called for the password if the backup is sealed.
  ///   - expectsSeal: Whether to refuse a backup that is not sealed.
  /// - Throws: ``CommandFailure``.
  init(_ path: String, password: () throws -> String, expectsSeal: Bool = false) throws {
    var source = try Source(path, password: password, expectsSeal: expectsSeal)
    let length = try source.read(4)
    let count = length.reduce(0) { $0 << 8 | Int($1) }
    guard count <= BackupFile.headerLimit else {
      throw BackupFile.damaged("its header is too long")
    }
    let json = try source.read(count)
    guard try source.read(32) == Digest.sha256(source.front + length + json) else {
      throw BackupFile.damaged("its header is not what was written")
    }
    guard let header = try? JSONDecoder().decode(BackupHeader.self, from: Data(json)) else {
      throw BackupFile.damaged("its header cannot be read")
    }
    try header.check()
    self.header = header
    try source.hold()
    self.source = source
  }

  /// Reads all parts to the end of the file, and verifies them. Can be called again, which reads
  /// them again.
  /// - Parameter take: Receives a part's bytes piece by piece; its last call for a part has none.
  func readParts(_ take: (BackupPart, [UInt8]) throws -> Void) throws {
    var source = source
    try source.goBack()
    for entry in header.entries {
      let digest = try SHA256Stream()
      var left = entry.size
      while left > 0 {
        let bytes = try source.read(Int(min(left, Int64(BackupFile.piece))))
        digest.update(bytes)
        left -= Int64(bytes.count)
        try take(entry.part, bytes)
      }
      guard Hex.encode(digest.finish()) == entry.sha256 else {
        throw BackupFile.damaged("\(entry.part.rawValue) in it is not what was written")
      }
      try take(entry.part, [])
    }
    guard source.isAtEnd else { throw BackupFile.damaged("more follows behind its end") }
  }

  /// The body, unsealed.
  private struct Source {
    let front: [UInt8]
    private let file: FileHandle
    private let key: [UInt8]?
    /// The number of bytes of the file not read yet.
    private var left: Int64
    private var number: UInt64 = 0
    private var place: UInt64 = 0
    /// The unread rest of the piece unsealed last.
    private var waiting: ArraySlice<UInt8> = []

    init(_ path: String, password: () throws -> String, expectsSeal: Bool) throws {
      var status = stat()
      // Non-blocking: opening a pipe would wait for a writer.
      let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
      guard descriptor >= 0 else {
        throw CommandFailure(
          "\(path) cannot be read: \(String(cString: strerror(errno)))", exitCode: .usage)
      }
      let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
      guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
        throw CommandFailure("\(path) is no file: a backup is read twice", exitCode: .usage)
      }
      self.file = file
      left = Int64(status.st_size)
      guard let front = try? Self.bytes(BackupFile.frontCount, of: file),
        front.starts(with: BackupFile.magic)
      else {
        throw CommandFailure("\(path) is no backup of Belfry", exitCode: .usage)
      }
      guard front[8] <= BackupFile.version else {
        throw CommandFailure(
          "\(path) has the form \(front[8]) of a newer belfry, this one reads \(BackupFile.version): use "
            + "a newer belfry", exitCode: .usage)
      }
      left -= Int64(BackupFile.frontCount)
      self.front = front
      guard front[9] == 1 else {
        guard front[9] == 0 else {
          throw BackupFile.damaged("its first bytes are not what was written")
        }
        // Otherwise it could be replaced with one that anyone can write.
        guard !expectsSeal else {
          throw CommandFailure(
            "\(path) is not sealed, though a password was given: it is not the backup that was sealed "
              + "with it, or leave the password out; nothing was changed", exitCode: .usage)
        }
        key = nil
        return
      }
      guard (10...17).contains(front[10]) else {
        throw BackupFile.damaged("its first bytes are not what was written")
      }
      key = try PasswordHash.key(
        from: try password(), salt: Array(front[12..<28]), cost: Int(front[10]))
    }

    mutating func read(_ count: Int) throws -> [UInt8] {
      guard let key else { return try take(count) }
      var bytes: [UInt8] = []
      while bytes.count < count {
        if waiting.isEmpty { try unseal(key) }
        let new = waiting.prefix(count - bytes.count)
        bytes += new
        waiting = waiting.dropFirst(new.count)
      }
      return bytes
    }

    var isAtEnd: Bool { left == 0 && waiting.isEmpty }

    /// Records the position in the file for ``goBack()``.
    mutating func hold() throws { place = try file.offset() }
    func goBack() throws { try file.seek(toOffset: place) }

    private mutating func unseal(_ key: [UInt8]) throws {
      let most = Int64(BackupFile.piece + AuthenticatedCipher.tagCount)
      let isLast = left <= most
      let sealed = try take(Int(min(max(left, 1), most)))
      do {
        waiting = try AuthenticatedCipher.aes256GCM.open(
          sealed, key: key, nonce: BackupFile.nonce(number, isLast: isLast), associated: front)[...]
      } catch {
        throw number == 0
          ? CommandFailure(
            "the password is not the one of this backup, or the file is damaged or cut short: try the "
              + "password again, then another copy of the file; nothing was changed")
          : BackupFile.damaged("it is cut short, or changed behind its byte \(number << 20)")
      }
      guard !waiting.isEmpty else { throw BackupFile.damaged("a piece of it is empty") }
      number += 1
    }

    private mutating func take(_ count: Int) throws -> [UInt8] {
      guard Int64(count) <= left, let bytes = try Self.bytes(count, of: file) else {
        throw BackupFile.damaged("it is cut short")
      }
      left -= Int64(count)
      return bytes
    }

    private static func bytes(_ count: Int, of file: FileHandle) throws -> [UInt8]? {
      var bytes: [UInt8] = []
      while bytes.count < count {
        guard let new = try file.read(upToCount: count - bytes.count), !new.isEmpty else {
          return nil
        }
        bytes += new
      }
      return bytes
    }
  }
}
