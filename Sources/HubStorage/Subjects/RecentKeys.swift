import Foundation

/// The keys of devices that may not be in the index yet, shared by the threads of a store.
///
/// The writing thread adds new keys to the first generation. When that is large enough it goes into
/// the index, slice by slice, while the next one fills. It remains here meanwhile, so that a reader
/// whose snapshot is older than the last slice still finds its keys.
final class RecentKeys: @unchecked Sendable {
  /// Numbers by their key, in slices of the index order: sorting or growing one slice takes some
  /// tenths of a millisecond, while all together would block the writing thread.
  struct Generation {
    private struct Slice {
      var first = NumberTable()
      /// Further numbers of the same key.
      var more: [Int64: [Int64]] = [:]

      func numbers(beyond hash: Int64) -> [Int64] { more.isEmpty ? [] : more[hash] ?? [] }
    }

    static let sliceCount = 256

    private var slices = [Slice](repeating: Slice(), count: sliceCount)
    /// Number of changes that it is made of, and so its size in the log.
    private(set) var changes = 0

    /// In the order of the hashes.
    private static func slice(_ key: DeviceKey) -> Int { Int(key.hash >> 56) + sliceCount / 2 }

    func contains(_ key: DeviceKey, _ number: Int64) -> Bool {
      let slice = Self.slice(key)
      return slices[slice].first[key.hash] == number
        || slices[slice].numbers(beyond: key.hash).contains(number)
    }

    func appendNumbers(of key: DeviceKey, to numbers: inout [Int64]) {
      let slice = Self.slice(key)
      guard let number = slices[slice].first[key.hash] else { return }
      numbers.append(number)
      numbers += slices[slice].numbers(beyond: key.hash)
    }

    mutating func apply(_ change: DeviceKeyChange) {
      changes += 1
      Self.apply(change, to: &slices[Self.slice(change.key)])
    }

    private static func apply(_ change: DeviceKeyChange, to slice: inout Slice) {
      let hash = change.key.hash
      if change.isAdded {
        guard let known = slice.first[hash] else {
          slice.first.set(hash, to: change.number)
          return
        }
        if known == change.number || slice.numbers(beyond: hash).contains(change.number) { return }
        slice.more[hash, default: []].append(change.number)
      } else if slice.first[hash] == change.number {
        if let next = slice.more[hash]?.popLast() {
          slice.first.set(hash, to: next)
        } else {
          slice.first.remove(hash)
        }
        if slice.more[hash]?.isEmpty == true { slice.more[hash] = nil }
      } else if let place = slice.more[hash]?.firstIndex(of: change.number) {
        slice.more[hash]?.remove(at: place)
      }
    }

    /// The keys of a slice, in the order of the index.
    func sorted(slice: Int) -> [DeviceKeyChange] {
      let slice = slices[slice]
      var all: [DeviceKeyChange] = []
      all.reserveCapacity(slice.first.count)
      slice.first.visit { hash, number in
        all.append(DeviceKeyChange(key: DeviceKey(hash: hash), number: number))
      }
      for (hash, numbers) in slice.more {
        for number in numbers {
          all.append(DeviceKeyChange(key: DeviceKey(hash: hash), number: number))
        }
      }
      all.sort { ($0.key.hash, $0.number) < ($1.key.hash, $1.number) }
      return all
    }
  }

  // `lock` guards all mutable state.
  private let lock = NSLock()
  /// The generations of this process, the newest first: the one that fills, the one being written
  /// to the index, and the one before.
  private var own = [Generation()]
  /// Keys that readers have found in the log after others' commits, the newest first.
  private var foreign: [Generation] = []
  /// The last commit that is included; -1 when something may be missing.
  private var commit: Int64 = -1
  private let writer: Int64

  private static let ownLimit = 3
  private static let foreignLimit = 2

  /// - Parameter writer: The number under which this process commits.
  init(writer: Int64) { self.writer = writer }

  func numbers(of key: DeviceKey) -> [Int64] {
    lock.lock()
    defer { lock.unlock() }
    var numbers: [Int64] = []
    for index in own.indices { own[index].appendNumbers(of: key, to: &numbers) }
    for index in foreign.indices { foreign[index].appendNumbers(of: key, to: &numbers) }
    return numbers
  }

  // MARK: Reading threads

  /// Whether the log may have changes that are missing here.
  func isBehind(_ state: StoreState) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    return commit < 0 || state.writer != writer && state.commitNumber > commit
  }

  func setForeign(_ keys: Generation, commit number: Int64) {
    lock.lock()
    defer { lock.unlock() }
    foreign = Array(([keys] + foreign).prefix(Self.foreignLimit))
    commit = max(commit, number)
  }

  // MARK: The writing thread

  /// Number of changes in the log that are not being written to the index yet.
  var changes: Int {
    lock.lock()
    defer { lock.unlock() }
    return own[0].changes
  }

  /// Whether the log may contain a key with a number.
  func contains(_ key: DeviceKey, _ number: Int64) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    return own.prefix(2).contains { $0.contains(key, number) }
  }

  /// Whether a key is still among those being written to the index.
  func isFrozen(_ key: DeviceKey, _ number: Int64) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    return own.count > 1 && own[1].contains(key, number)
  }

  func add(_ key: DeviceKey, of number: Int64) {
    lock.lock()
    defer { lock.unlock() }
    own[0].apply(DeviceKeyChange(key: key, number: number))
  }

  func apply(_ changes: [DeviceKeyChange]) {
    lock.lock()
    defer { lock.unlock() }
    for change in changes {
      own[0].apply(change)
      if !change.isAdded, own.count > 1 { own[1].apply(change) }
    }
  }

  /// Starts with the contents of the log.
  func load(_ keys: Generation, commit number: Int64) {
    lock.lock()
    defer { lock.unlock() }
    push(keys)
    commit = max(commit, number)
  }

  /// Starts a new generation; the previous one is written to the index.
  func freeze() {
    lock.lock()
    defer { lock.unlock() }
    push(Generation())
  }

  /// The keys of a slice that are being written to the index, in its order.
  func frozenKeys(slice: Int) -> [DeviceKeyChange] {
    lock.lock()
    defer { lock.unlock() }
    return own.count > 1 ? own[1].sorted(slice: slice) : []
  }

  func follow(commit number: Int64) {
    lock.lock()
    defer { lock.unlock() }
    if commit >= 0 { commit = max(commit, number) }
  }

  /// Notes that the contents may differ from the log.
  func doubt() {
    lock.lock()
    defer { lock.unlock() }
    commit = -1
  }

  private func push(_ keys: Generation) {
    own = Array(([keys] + own).prefix(Self.ownLimit))
  }
}
