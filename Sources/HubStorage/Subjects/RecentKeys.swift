import Foundation

/// The keys of devices that may not be in the index yet, shared by the threads of a store.
///
/// The writing thread puts new ones into the first generation. When that is large enough it goes
/// into the index, slice by slice, while the next one fills; and it stays here while that does, so
/// that a reader whose snapshot is older than the last slice finds its keys all the same.
final class RecentKeys: @unchecked Sendable {
  /// Numbers by their key.
  struct Generation {
    private var first: [Int64: Int64] = [:]
    /// Further numbers of the same key.
    private var more: [Int64: [Int64]] = [:]
    /// How many changes have made it: what the log has of it.
    private(set) var changes = 0

    func contains(_ key: DeviceKey, _ number: Int64) -> Bool {
      first[key.hash] == number || more[key.hash]?.contains(number) == true
    }

    func appendNumbers(of key: DeviceKey, to numbers: inout [Int64]) {
      guard let number = first[key.hash] else { return }
      numbers.append(number)
      if let more = more[key.hash] { numbers += more }
    }

    mutating func apply(_ change: DeviceKeyChange) {
      let hash = change.key.hash
      changes += 1
      if change.isAdded {
        guard let known = first[hash] else {
          first[hash] = change.number
          return
        }
        if known == change.number || more[hash]?.contains(change.number) == true { return }
        more[hash, default: []].append(change.number)
      } else if first[hash] == change.number {
        first[hash] = more[hash]?.popLast()
        if more[hash]?.isEmpty == true { more[hash] = nil }
      } else if let place = more[hash]?.firstIndex(of: change.number) {
        more[hash]?.remove(at: place)
      }
    }

    /// In the order of the index.
    var sorted: [DeviceKeyChange] {
      var all: [DeviceKeyChange] = []
      all.reserveCapacity(first.count)
      for (hash, number) in first {
        all.append(DeviceKeyChange(key: DeviceKey(hash: hash), number: number))
      }
      for (hash, numbers) in more {
        for number in numbers {
          all.append(DeviceKeyChange(key: DeviceKey(hash: hash), number: number))
        }
      }
      all.sort { ($0.key.hash, $0.number) < ($1.key.hash, $1.number) }
      return all
    }
  }

  // `lock` guards all that varies here.
  private let lock = NSLock()
  /// Those of this process, the newest first: the one that fills, the one on its way into the
  /// index, the one before.
  private var own = [Generation()]
  /// What readers have found in the log after others' commits, the newest first.
  private var foreign: [Generation] = []
  /// The last commit that all this shows; -1 when it may lack something.
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
    for keys in own { keys.appendNumbers(of: key, to: &numbers) }
    for keys in foreign { keys.appendNumbers(of: key, to: &numbers) }
    return numbers
  }

  // MARK: Reading threads

  /// Whether the log may have something that is not here.
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

  /// How many changes the log has of keys that are not on their way into the index yet.
  var changes: Int {
    lock.lock()
    defer { lock.unlock() }
    return own[0].changes
  }

  /// Whether the log may have a key of a number.
  func contains(_ key: DeviceKey, _ number: Int64) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    return own.prefix(2).contains { $0.contains(key, number) }
  }

  /// Whether a key is still one of those on their way into the index.
  func isFrozen(_ key: DeviceKey, _ number: Int64) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    return own.count > 1 && own[1].contains(key, number)
  }

  func apply(_ changes: [DeviceKeyChange]) {
    lock.lock()
    defer { lock.unlock() }
    for change in changes {
      own[0].apply(change)
      if !change.isAdded, own.count > 1 { own[1].apply(change) }
    }
  }

  /// Starts with what the log has.
  func load(_ keys: Generation, commit number: Int64) {
    lock.lock()
    defer { lock.unlock() }
    push(keys)
    commit = max(commit, number)
  }

  /// Starts a new generation.
  /// - Returns: The keys of the one before, in the order of the index.
  func freeze() -> [DeviceKeyChange] {
    lock.lock()
    let full = own[0]
    push(Generation())
    lock.unlock()
    return full.sorted
  }

  func follow(commit number: Int64) {
    lock.lock()
    defer { lock.unlock() }
    if commit >= 0 { commit = max(commit, number) }
  }

  /// What is here may not be what the log has.
  func doubt() {
    lock.lock()
    defer { lock.unlock() }
    commit = -1
  }

  private func push(_ keys: Generation) {
    own = Array(([keys] + own).prefix(Self.ownLimit))
  }
}
