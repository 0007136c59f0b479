package import Foundation
package import HubCore
import NotificationHubs

extension InMemoryHubStore.Book {
  /// An app has registered a handle: what was removed for it stays away.
  mutating func forgetRemoved(_ draft: RegistrationDraft) {
    removed = removed.filter { _, removed in
      removed.row.draft.platform != draft.platform
        || removed.row.draft.channel.handle != draft.channel.handle
    }
  }

  fileprivate mutating func setExpired(_ isExpired: Bool, of row: InMemoryHubStore.Row) {
    if let tile = row.draft.secondaryTileName {
      installations[row.installation]?.secondaryTiles[tile]?.pushChannelExpired = isExpired
    } else {
      installations[row.installation]?.pushChannelExpired = isExpired
    }
  }

  fileprivate mutating func setHandle(_ handle: String, of row: InMemoryHubStore.Row) {
    rows[row.id]?.draft.channel = .handle(handle)
    if let tile = row.draft.secondaryTileName {
      installations[row.installation]?.secondaryTiles[tile]?.pushChannel = handle
    } else {
      installations[row.installation]?.pushChannel = .handle(handle)
    }
  }
}

extension InMemoryHubStore {
  /// Removes, or gives another handle, all registrations of a device with a handle.
  func condemn(_ word: Checkpoint.Condemned, hub: Hub.ID, at: Date) {
    guard var book = books[hub] else { return }
    func isMeant(_ row: Row) -> Bool {
      String(decoding: row.draft.channel.storedBytes, as: UTF8.self) == word.handle
        && row.revision <= word.revision.rawValue
    }
    guard let first = book.rows[word.registration], isMeant(first) else { return }
    for row in book.rows.values
    where row.draft.platform == first.draft.platform && row.installation == first.installation
      && isMeant(row)
    {
      book.removed[row.id] = Removed(
        row: row, at: at, outcome: word.outcome, newHandle: word.newHandle)
      if let handle = word.newHandle {
        book.setHandle(handle, of: row)
        book.rows[row.id]?.written = nextWrite()
      } else {
        book.rows[row.id] = nil
        book.setExpired(true, of: row)
      }
    }
    books[hub] = book
  }

  package func removals(_ wave: RemovalWave, hub: Hub.ID) throws -> [RemovalCount] {
    let found = try book(hub).removed.values.filter { isMeant($0, by: wave) }
    let groups = Dictionary(grouping: found) { removed in
      [
        Self.milliseconds(removed.at) / 3_600_000,
        Int64(PushPlatform.allCases.firstIndex(of: removed.row.draft.platform) ?? 0),
        Int64(removed.outcome.rawValue),
      ]
    }
    return groups.sorted { $0.key.lexicographicallyPrecedes($1.key) }.compactMap { key, group in
      group.first.map {
        RemovalCount(
          hour: key[0], platform: $0.row.draft.platform, outcome: $0.outcome, count: group.count)
      }
    }
  }

  package func restoreRemoved(
    _ wave: RemovalWave, hub: Hub.ID, asOf now: Date, limit: Int
  ) throws -> Restoration {
    var book = try book(hub)
    if wave.isDoubted {
      book.feedback.removeAll {
        $0.at >= wave.since && wave.platform ?? $0.platform == $0.platform
          && $0.registration != nil
      }
    }
    let found = book.removed.values.filter { isMeant($0, by: wave) }
      .sorted { ($0.at, $0.row.id) < ($1.at, $1.row.id) }
    let part = found.prefix(limit)
    var result = Restoration(hasMore: found.count > part.count)
    revision += 1
    for removed in part {
      book.removed[removed.row.id] = nil
      let isOver = removed.row.draft.expiresAt.map { $0 <= now } ?? false
      let live = book.rows[removed.row.id]
      if let handle = removed.newHandle {
        guard !isOver, live?.draft.channel == .handle(handle) else {
          result.superseded += 1
          continue
        }
        book.setHandle(removed.row.draft.channel.handle, of: removed.row)
        book.rows[removed.row.id]?.written = nextWrite()
      } else {
        let isNamed = book.rows.values.contains {
          $0.publicID != nil && $0.publicID == removed.row.publicID
        }
        guard !isOver, live == nil, !isNamed else {
          result.superseded += 1
          continue
        }
        var row = removed.row
        row.etag += 1
        row.revision = revision
        row.written = nextWrite()
        book.setExpired(false, of: row)
        // Its tags may have been changed meanwhile.
        row.draft =
          book.installations[row.installation]?.registrationDrafts.first {
            Self.isSame($0, row.draft) && $0.channel == row.draft.channel
          } ?? row.draft
        book.rows[row.id] = row
      }
      result.restored += 1
    }
    books[hub] = book
    return result
  }

  private func isMeant(_ removed: Removed, by wave: RemovalWave) -> Bool {
    removed.at >= wave.since
      && wave.platform ?? removed.row.draft.platform == removed.row.draft.platform
  }
}
