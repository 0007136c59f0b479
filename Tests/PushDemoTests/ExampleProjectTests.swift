import Foundation
import PushDemo
import Testing

/// The Xcode project cannot be built on every system, so its files are read here.
@Suite("The example's project files")
struct ExampleProjectTests {
  private static let folder = URL(filePath: #filePath).resolvingSymlinksInPath()
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Examples/PushDemo")

  private static func propertyList(_ path: String) throws -> [String: Any] {
    let data = try Data(contentsOf: folder.appending(path: path))
    let value = try PropertyListSerialization.propertyList(from: data, format: nil)
    return try #require(value as? [String: Any])
  }

  private struct Project {
    let objects: [String: [String: Any]]
    let root: String

    init() throws {
      let document = try ExampleProjectTests.propertyList("PushDemo.xcodeproj/project.pbxproj")
      objects = try #require(document["objects"] as? [String: [String: Any]])
      root = try #require(document["rootObject"] as? String)
    }

    func all(_ kind: String) -> [String: [String: Any]] {
      objects.filter { $0.value["isa"] as? String == kind }
    }
  }

  @Test("every object that the project refers to is there")
  func references() throws {
    let project = try Project()
    #expect(project.objects[project.root] != nil)
    func check(_ value: Any, in owner: String) {
      switch value {
      case let text as String:
        guard text.count == 24, text.allSatisfy(\.isHexDigit) else { return }
        #expect(project.objects[text] != nil, "\(owner) refers to \(text)")
      case let list as [Any]: for item in list { check(item, in: owner) }
      case let members as [String: Any]: for item in members.values { check(item, in: owner) }
      default: return
      }
    }
    for (id, object) in project.objects { check(object, in: id) }
  }

  @Test("every file of the project exists, but for the settings that each developer makes")
  func files() throws {
    let project = try Project()
    var seen: Set<String> = []
    func walk(_ id: String, _ folder: URL) throws {
      let object = try #require(project.objects[id])
      let path = object["path"] as? String
      if object["isa"] as? String == "PBXGroup" {
        let inner = path.map { folder.appending(path: $0) } ?? folder
        for child in object["children"] as? [String] ?? [] { try walk(child, inner) }
      } else if object["sourceTree"] as? String == "<group>", let path,
        path != "devsettings.plist"
      {
        seen.insert(path)
        #expect(
          FileManager.default.fileExists(atPath: folder.appending(path: path).path), "\(path)")
      }
    }
    let main = try #require(project.objects[project.root]?["mainGroup"] as? String)
    try walk(main, Self.folder)
    for name in ["PushDemo", "NotificationService"] {
      let files = try FileManager.default.contentsOfDirectory(
        atPath: Self.folder.appending(path: name).path)
      for file in files where file.hasSuffix(".swift") {
        #expect(seen.contains(file), "\(file) is not in the project")
      }
    }
  }

  @Test("app and extension share a keychain group, and the app wakes for background pushes")
  func entitlements() throws {
    let app = try Self.propertyList("PushDemo/PushDemo.entitlements")
    let service = try Self.propertyList("NotificationService/NotificationService.entitlements")
    let groups = try #require(app["keychain-access-groups"] as? [String])
    #expect(groups == service["keychain-access-groups"] as? [String])
    #expect(app["aps-environment"] as? String == "development")
    let info = try Self.propertyList("PushDemo/Info.plist")
    #expect(info["UIBackgroundModes"] as? [String] == ["remote-notification"])
    let extensionInfo = try Self.propertyList("NotificationService/Info.plist")
    let point = try #require(extensionInfo["NSExtension"] as? [String: Any])
    #expect(point["NSExtensionPointIdentifier"] as? String == "com.apple.usernotifications.service")
    #expect(
      point["NSExtensionPrincipalClass"] as? String
        == "$(PRODUCT_MODULE_NAME).NotificationService")
  }

  @Test("the app has a scene, whose class is in the app's module and not in the package's")
  func scene() throws {
    let info = try Self.propertyList("PushDemo/Info.plist")
    let manifest = try #require(info["UIApplicationSceneManifest"] as? [String: Any])
    let roles = try #require(manifest["UISceneConfigurations"] as? [String: Any])
    let scenes = try #require(roles["UIWindowSceneSessionRoleApplication"] as? [[String: String]])
    #expect(
      scenes.first?["UISceneDelegateClassName"] == "$(PRODUCT_MODULE_NAME).SceneDelegate")
    let settings = try Project().all("XCBuildConfiguration").values.compactMap {
      $0["buildSettings"] as? [String: Any]
    }.filter { $0["INFOPLIST_FILE"] as? String == "PushDemo/Info.plist" }
    #expect(settings.count == 2)
    for each in settings { #expect(each["PRODUCT_MODULE_NAME"] as? String == "PushDemoApp") }
  }

  @Test("a phone may reach a backend on a Mac over HTTP, and nothing else")
  func transportSecurity() throws {
    let info = try Self.propertyList("PushDemo/Info.plist")
    let security = try #require(info["NSAppTransportSecurity"] as? [String: Bool])
    #expect(security == ["NSAllowsLocalNetworking": true])
    #expect((info["NSLocalNetworkUsageDescription"] as? String)?.isEmpty == false)
  }

  @Test("the settings' example names every key, and is refused until it is filled in")
  func settings() throws {
    let url = Self.folder.appending(path: "PushDemo/SupportingFiles/devsettings.example.plist")
    let error = #expect(throws: DemoSettingsError.self) {
      try DemoSettings(propertyList: Data(contentsOf: url))
    }
    #expect(error?.description.contains("no value of its own") == true)
  }
}
