import Foundation
import NotificationHubs
import PushDevice
import PushDeviceTesting
import Testing

@Suite("The device's storage")
struct StorageTests {
  @Test("while the storage is locked nothing is registered, and after it everything, once")
  func locked() async throws {
    let device = TestDevice()
    let id = try #require(await device.launch().installationID)
    // Restarted, not yet unlocked, and woken in the background with a new token.
    device.clock.endProcess()
    device.storage.error = .locked
    let push = device.process()
    await push.start()
    await push.didRegister(deviceToken: .token(2))
    await device.clock.advance(by: .seconds(86_400 * 30))
    #expect(await push.state == .locked)
    #expect(await push.installationID == nil)
    #expect(device.hub.attempts == 1)
    await #expect(throws: StorageError.locked) { try await push.signIn(as: "anna") }
    await #expect(throws: StorageError.locked) { try await push.synchronize() }

    device.storage.error = nil
    await push.protectedDataDidBecomeAvailable()
    await device.clock.advance(by: .seconds(1))
    #expect(await push.installationID == id)
    #expect(device.registered?.pushChannel == .apns(.token(2)))
    #expect(device.saves.count == 2)
    #expect(try await push.userID == nil)
  }

  @Test("a token that came while the storage was locked is registered, whatever opens it")
  func tokenBeforeUnlock() async throws {
    for opener in 0..<3 {
      let device = TestDevice()
      device.storage.error = .locked
      let push = device.process()
      await push.didRegister(deviceToken: .token(7))
      device.storage.error = nil
      switch opener {
      case 0: try await push.insert("news")
      case 1: await push.start()
      default: try await push.signIn(as: "anna")
      }
      await push.settled()
      await device.clock.advance(by: .seconds(1))
      await push.willLeaveForeground()
      await push.settled()
      #expect(device.registered?.pushChannel == .apns(.token(7)), "\(opener)")
    }
  }

  @Test("a first launch in a locked device makes no id, and its id is the same ever after")
  func firstLaunchLocked() async throws {
    let device = TestDevice()
    device.storage.error = .locked
    #expect(await device.launch().installationID == nil)
    #expect(device.storage.writes == 0)
    device.storage.error = nil
    let first = try #require(await device.launch().installationID)
    #expect(await device.launch().installationID == first)
  }

  @Test("a device restored from another's backup has an id of its own, and registers everything")
  func restored() async throws {
    let device = TestDevice()
    let old = await device.launch()
    try await old.insert("news")
    try await old.synchronize()
    device.storage.restoreElsewhere()
    let new = await device.launch(token: 2)
    #expect(await new.storageCondition == .restored)
    #expect(await new.installationID != old.installationID)
    #expect(device.hub.installations.count == 2)
    #expect(device.saves.last?.tagNames == ["news"])
  }

  @Test("a reinstalled app has its old id, nobody is signed in, and the hub hears so")
  func reinstalled() async throws {
    let device = TestDevice()
    let old = await device.launch()
    try await old.signIn(as: "anna", tags: ["vip"])
    try await old.synchronize()
    device.storage.deleteApp()
    let new = await device.launch(token: 2)
    #expect(await new.storageCondition == .reinstalled)
    #expect(await new.installationID == old.installationID)
    #expect(try await new.userID == nil)
    #expect(device.registered?.userID == nil)
    #expect(device.registered?.tagNames == [])
  }

  @Test(
    "a damaged record, and one of a newer version, are set aside, and the device registers anew",
    arguments: [#"{"version":1,"#, #"{"version":2,"installationID":"x"}"#, "", "\u{0}\u{0}"])
  func damaged(contents: String) async throws {
    let device = TestDevice()
    let id = await device.launch().installationID
    device.storage[.record] = Data(contents.utf8)
    let push = await device.launch()
    #expect(await push.storageCondition == .damaged)
    #expect(await push.installationID == id)
    #expect(device.storage[.damagedRecord] == Data(contents.utf8))
    #expect(device.saves.count == 2)
    #expect(await device.launch().storageCondition == .continued)
  }

  @Test("a storage that fails is a state, and the change is refused")
  func failing() async throws {
    let device = TestDevice()
    device.storage.error = .failed("the disk is full")
    let push = device.process()
    await #expect(throws: StorageError.failed("the disk is full")) { try await push.insert("a") }
    #expect(await push.state == .storageFailed("the disk is full"))
  }

  @Test("while the storage fails nothing is sent, since a lost reply would be forgotten")
  func failingLater() async throws {
    let device = TestDevice()
    let push = device.process()
    await push.start()
    device.storage.error = .failed("the disk is full")
    await push.didRegister(deviceToken: .token(1))
    await device.clock.advance(by: .seconds(3_600))
    #expect(await push.state == .storageFailed("the disk is full"))
    #expect(device.hub.attempts == 0)
    device.storage.error = nil
    await device.clock.advance(by: .seconds(1_800))
    #expect(await push.state.isSaved)
    #expect(device.hub.attempts == 1)
  }

  @Test("a confirmation that cannot be stored is kept in memory, and stored later")
  func unstoredConfirmation() async throws {
    let device = TestDevice()
    let push = device.process()
    await push.start()
    device.hub.hold()
    await push.didRegister(deviceToken: .token(1))
    await push.willLeaveForeground()
    await device.hub.heldRequest()
    device.storage.error = .failed("the disk is full")
    device.hub.release()
    await push.settled()
    #expect(await push.state == .storageFailed("the disk is full"))
    device.storage.error = nil
    await push.didEnterForeground()
    await device.clock.advance(by: .seconds(5))
    _ = await device.launch()
    #expect(device.hub.attempts == 1)
  }

  @Test("changes of app and extension at the same time are both kept, and both sent")
  func twoProcesses() async throws {
    let device = TestDevice()
    let app = await device.launch()
    let helper = device.process()
    try await helper.insert("from-extension")
    try await app.insert("from-app")
    await device.clock.advance(by: .seconds(1))
    #expect(device.registered?.tagNames == ["from-app", "from-extension"])
    // Only the extension changes something: the app sees it when it comes to the foreground.
    try await helper.remove("from-extension")
    await app.didEnterForeground()
    await device.clock.advance(by: .seconds(1))
    #expect(device.registered?.tagNames == ["from-app"])
    #expect(device.hub.attempts == 3)
  }

  @Test("a file storage keeps its items over processes and from other users")
  func files() throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: directory) }
    #expect(try FileStorage(directory: directory).load(.record) == nil)
    try FileStorage(directory: directory).save(Data("1".utf8), as: .record)
    try FileStorage(directory: directory).update(.record) { $0? += Data("2".utf8) }
    #expect(try FileStorage(directory: directory).load(.record) == Data("12".utf8))
    try FileStorage(directory: directory).save(nil, as: .record)
    #expect(try FileStorage(directory: directory).load(.record) == nil)
    try FileStorage(directory: directory).save(Data("3".utf8), as: .record)
    for (path, expected) in [("", 0o700), ("installation.json", 0o600)] {
      let attributes = try FileManager.default.attributesOfItem(
        atPath: directory.appending(path: path).path)
      #expect(attributes[.posixPermissions] as? Int == expected)
    }
  }

  @Test("in a directory that exists no other user can read a file at any time")
  func existingDirectory() throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(
      at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    defer { try? FileManager.default.removeItem(at: directory) }
    let storage = FileStorage(directory: directory)
    try storage.save(Data("1".utf8), as: .installationID)
    // A file that others could read is replaced, not written to.
    let file = directory.appending(path: "installation-id").path
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
    try storage.save(Data("2".utf8), as: .installationID)
    func permissions(_ path: String) throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }
    #expect(try permissions(file) == 0o600)
    #expect(try permissions(directory.path) == 0o755, "it may be anybody's directory")
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
        == [".lock", "installation-id"])
  }

  @Test("many writers of a file storage lose no change")
  func concurrentFiles() async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: directory) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 1...50 {
        group.addTask {
          try FileStorage(directory: directory).update(.record) { $0 = ($0 ?? Data()) + [1] }
        }
      }
      try await group.waitForAll()
    }
    #expect(try FileStorage(directory: directory).load(.record)?.count == 50)
  }
}
