/// The contents of a disk: of each file the synced bytes, and those written since, which a power
/// cut may keep, drop or tear.
struct DiskModel {
  enum Change {
    case write(at: Int, [UInt8])
    case resize(Int)
  }

  struct File {
    /// The content at the last sync.
    var synced: [UInt8] = []
    var changes: [Change] = []
    /// The name of the file is on the disk, not only in the system's memory.
    var isListed = false
  }

  /// By path.
  private(set) var files: [String: File] = [:]
  /// A disk writes sectors whole or not at all.
  static let sector = 512

  /// Takes up a file as it is found; what is known already stays.
  mutating func open(_ path: String, content: () -> [UInt8]) {
    if files[path] == nil { files[path] = File(synced: content()) }
  }

  mutating func change(_ path: String, _ change: Change) { files[path]?.changes.append(change) }

  mutating func delete(_ path: String) { files[path] = nil }

  /// Makes all earlier changes of a file durable.
  /// - Parameter listing: The directory too, with the names of all files.
  mutating func sync(_ path: String, listing: Bool) {
    guard var file = files.removeValue(forKey: path) else { return }
    for change in file.changes { Self.apply(change, to: &file.synced) }
    file.changes = []
    files[path] = file
    if listing { for path in files.keys { files[path]?.isListed = true } }
  }

  /// The contents of a file after a power cut; `nil` if its name is lost as well.
  ///
  /// - Parameter keeping: The share of the sectors written since the last sync that have got to the
  ///   disk, in whatever order.
  static func left<Generator: RandomNumberGenerator>(
    of file: File, keeping: Double, using generator: inout Generator
  ) -> [UInt8]? {
    if !file.isListed, Double.random(in: 0..<1, using: &generator) >= keeping { return nil }
    var content = file.synced
    for change in file.changes {
      switch change {
      case .resize:
        if Double.random(in: 0..<1, using: &generator) < keeping { apply(change, to: &content) }
      case .write(let start, let bytes):
        var offset = 0
        while offset < bytes.count {
          // Up to the next border of a sector.
          let end = min(bytes.count, offset + sector - (start + offset) % sector)
          if Double.random(in: 0..<1, using: &generator) < keeping {
            apply(.write(at: start + offset, Array(bytes[offset..<end])), to: &content)
          }
          offset = end
        }
      }
    }
    return content
  }

  private static func apply(_ change: Change, to content: inout [UInt8]) {
    switch change {
    case .resize(let size):
      if size < content.count { content.removeLast(content.count - size) }
      if size > content.count { content += [UInt8](repeating: 0, count: size - content.count) }
    case .write(let offset, let bytes):
      if content.count < offset + bytes.count {
        content += [UInt8](repeating: 0, count: offset + bytes.count - content.count)
      }
      content.replaceSubrange(offset..<offset + bytes.count, with: bytes)
    }
  }
}
