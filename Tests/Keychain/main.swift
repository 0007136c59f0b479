// The SDK's keychain and app group storage on the stand-in keychain: script/check-example compiles it together with
// the files that it uses, and runs it.

import Foundation
import Security

let storage = KeychainStorage(group: "shared")
let (first, second) = (Data("1".utf8), Data("2".utf8))

func check(_ isRight: Bool, _ promise: String, line: Int = #line) {
  guard !isRight else { return }
  print("Tests/Keychain/main.swift:\(line): \(promise)")
  exit(1)
}

func error(_ body: () throws -> Void) -> StorageError? {
  do {
    try body()
    return nil
  } catch { return error as? StorageError }
}

check(try storage.load(.installationID) == nil, "an item that is not there is nothing")
try storage.save(first, as: .installationID)
check(try storage.load(.installationID) == first, "a new item can be read")
try storage.save(second, as: .installationID)
check(try storage.load(.installationID) == second, "a changed item can be read")
check(
  try KeychainStorage(group: "other").load(.installationID) == nil, "groups are apart")
let item = standInItems.values.first
check(
  item?[kSecAttrAccessible] as? String == kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
  "an item can be read after the first unlock, and is in no backup")

// Another process adds or removes the item between reading and writing.
try storage.save(nil, as: .installationID)
check(try storage.load(.installationID) == nil, "a deleted item is gone")
var calls = 0
try storage.update(.installationID) { data in
  calls += 1
  if calls == 1 { try? storage.save(first, as: .installationID) }
  data = data ?? second
}
check(
  try storage.load(.installationID) == first, "of two processes that add, the first one's stays")
calls = 0
try storage.update(.installationID) { data in
  calls += 1
  if calls == 1 { try? storage.save(nil, as: .installationID) }
  data = second
}
check(try storage.load(.installationID) == second, "a change of a removed item adds it")

standInStatus = nil
calls = 0
check(
  error {
    try storage.update(.record) { data in
      calls += 1
      // Another process always comes between.
      try? storage.save(data == nil ? first : nil, as: .record)
      data = data == nil ? second : first + second
    }
  } == .failed("the keychain has and has not the item 'installation.json'") && calls < 10,
  "an item that can neither be found nor added is told")
try storage.save(nil, as: .record)

standInStatus = errSecInteractionNotAllowed
check(
  error { _ = try storage.load(.installationID) } == .locked, "before the first unlock it is locked"
)
check(error { try storage.save(first, as: .installationID) } == .locked, "locked for writing too")
standInStatus = -34018
check(
  error { _ = try storage.load(.installationID) } == .failed("the keychain refused (-34018)"),
  "a missing entitlement is told")
standInStatus = nil
check(try storage.load(.installationID) == second, "nothing was lost")

let both = AppGroupStorage(group: "group.news")
try both.save(first, as: .installationID)
try both.save(second, as: .record)
check(standInItems.count == 2, "of the two only the secret is in the keychain")
// The keychain's own change is two steps, which the lock of the container makes one.
DispatchQueue.concurrentPerform(iterations: 50) { _ in
  try? both.update(StoredItem("count", isSecret: true)) { $0 = ($0 ?? Data()) + [1] }
}
check(
  try both.load(StoredItem("count", isSecret: true))?.count == 50,
  "of many processes that change a secret each change is kept")
check(try both.load(.installationID) == first && both.load(.record) == second, "both can be read")
check(
  error { _ = try AppGroupStorage(group: "none").load(.record) }
    == .failed("the entitlements do not have the app group 'none'"), "a missing app group is told")
if let container = FileManager.default.containerURL(
  forSecurityApplicationGroupIdentifier: "group.news")
{
  try? FileManager.default.removeItem(at: container)
}
