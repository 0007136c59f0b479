import Foundation

/// A change that a commit has made to the members of a tag.
struct TagChange: Sendable {
  let tag: Int64
  let registration: UInt32
  let isMember: Bool
}

/// The bitmaps of tags that sends have asked for, shared by the threads of a store.
///
/// A bitmap is loaded from the file when it is first needed, follows every commit from then on, and
/// is evicted when the memory budget is exceeded. Evaluation happens under the lock, so that an
/// expression sees all its tags in the state of one commit.
final class AudienceIndex: @unchecked Sendable {
  // `lock` guards all mutable state, the contents of the bitmaps included.
  private let lock = NSLock()
  private var entries: [Int64: Entry] = [:]
  private var loads: [Int64: [Load]] = [:]
  private var bytes = 0
  /// Counts uses, to find the least recently used entry.
  private var tick = 0
  /// The last commit that the bitmaps show.
  private var commit: Int64
  private let budget: Int
  private let writer: Int64

  private struct Entry {
    let bitmap: Bitmap
    var bytes: Int
    var lastUse: Int
    /// Whether commits have changed the bitmap since ``bytes`` was measured.
    var hasChanged = false
  }

  /// A bitmap that is being loaded: changes committed meanwhile are applied to it when it arrives.
  final class Load {
    fileprivate let tag: Int64
    fileprivate var changes: [TagChange] = []
    /// Whether commits of other processes have made it useless.
    fileprivate var isStale = false
    fileprivate init(tag: Int64) { self.tag = tag }
  }

  /// Memory that an entry takes beside its bitmap's own bytes: dictionary slot, objects, allocator.
  private static let entryOverhead = 256

  /// - Parameters:
  ///   - budget: Memory for bitmaps in bytes; exceeded while one evaluation needs more.
  ///   - writer: The number under which this process commits.
  ///   - commit: The last commit at this moment.
  init(budget: Int, writer: Int64, commit: Int64) {
    self.budget = budget
    self.writer = writer
    self.commit = commit
  }

  /// Lends the bitmaps of `tags` for the length of the call, all from the state of one commit.
  /// - Returns: `nil` when some are not loaded; `missing` names them.
  func withBitmaps<Value>(
    of tags: Set<Int64>, missing: inout [Int64], _ body: ([Int64: Bitmap]) -> Value
  ) -> Value? {
    lock.lock()
    defer { lock.unlock() }
    tick += 1
    var found: [Int64: Bitmap] = Dictionary(minimumCapacity: tags.count)
    missing = []
    for tag in tags {
      if let entry = entries[tag] {
        entries[tag]?.lastUse = tick
        found[tag] = entry.bitmap
      } else {
        missing.append(tag)
      }
    }
    guard missing.isEmpty else { return nil }
    defer { trim() }
    return body(found)
  }

  /// Announces that the caller reads a tag's rows now, in a snapshot taken after this call.
  func beginLoad(of tag: Int64) -> Load {
    lock.lock()
    defer { lock.unlock() }
    let load = Load(tag: tag)
    loads[tag, default: []].append(load)
    return load
  }

  /// Completes a load; `bitmap` is `nil` when reading failed.
  func finish(_ load: Load, with bitmap: Bitmap?) {
    lock.lock()
    defer { lock.unlock() }
    loads[load.tag]?.removeAll { $0 === load }
    if loads[load.tag]?.isEmpty == true { loads[load.tag] = nil }
    guard let bitmap, !load.isStale, entries[load.tag] == nil else { return }
    for change in load.changes { bitmap.apply(change) }
    let size = bitmap.byteCount + Self.entryOverhead
    entries[load.tag] = Entry(bitmap: bitmap, bytes: size, lastUse: tick)
    bytes += size
  }

  /// Follows a commit of this process.
  func apply(_ changes: [TagChange], commit number: Int64) {
    lock.lock()
    defer { lock.unlock() }
    if number != commit + 1 { dropAll() }
    commit = number
    if entries.isEmpty && loads.isEmpty { return }
    for change in changes {
      if let entry = entries[change.tag] {
        entry.bitmap.apply(change)
        entries[change.tag]?.hasChanged = true
        // An upper bound for a new member; ``trim()`` measures the exact size.
        if change.isMember {
          entries[change.tag]?.bytes += 2
          bytes += 2
        }
      }
      if let waiting = loads[change.tag] { for load in waiting { load.changes.append(change) } }
    }
  }

  /// Notes the last commit that a reader has seen; a commit of another process invalidates all
  /// bitmaps.
  func noteCommit(_ number: Int64, by other: Int64) {
    lock.lock()
    defer { lock.unlock() }
    guard other != writer, number > commit else { return }
    dropAll()
    commit = number
  }

  /// Forgets everything, for changes too large to follow one by one.
  func removeAll() {
    lock.lock()
    defer { lock.unlock() }
    dropAll()
  }

  private func dropAll() {
    entries = [:]
    bytes = 0
    for waiting in loads.values { for load in waiting { load.isStale = true } }
    loads = [:]
  }

  /// Evicts the least recently used entries until the budget is met.
  private func trim() {
    guard bytes > budget else { return }
    for (tag, entry) in entries where entry.hasChanged {
      let size = entry.bitmap.byteCount + Self.entryOverhead
      bytes += size - entry.bytes
      entries[tag]?.bytes = size
      entries[tag]?.hasChanged = false
    }
    guard bytes > budget else { return }
    // Frees some room to spare, so that the next load does not sort again.
    for (tag, entry) in entries.sorted(by: { $0.value.lastUse < $1.value.lastUse }) {
      if bytes <= budget / 8 * 7 || entry.lastUse == tick { break }
      entries[tag] = nil
      bytes -= entry.bytes
    }
  }
}

extension Bitmap {
  func apply(_ change: TagChange) {
    if change.isMember { insert(change.registration) } else { remove(change.registration) }
  }
}
