import Foundation
import NotificationHubs
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

  @Test("the app has scenes, which SwiftUI makes, on iPhone and iPad")
  func scenes() throws {
    let info = try Self.propertyList("PushDemo/Info.plist")
    let manifest = try #require(info["UIApplicationSceneManifest"] as? [String: Any])
    #expect(manifest["UISceneConfigurations"] == nil)
    #expect(info["ITSAppUsesNonExemptEncryption"] as? Bool == false)
    #expect((info["UISupportedInterfaceOrientations~ipad"] as? [String])?.count == 4)
  }

  @Test("app and extension share the app group that their code names")
  func appGroup() throws {
    for path in [
      "PushDemo/PushDemo.entitlements", "NotificationService/NotificationService.entitlements",
    ] {
      let groups = try Self.propertyList(path)["com.apple.security.application-groups"]
      let group = try #require((groups as? [String])?.first)
      #expect(try Self.text("PushDemo/SharedStorage.swift").contains("\"\(group)\""))
    }
  }

  @Test("the privacy manifests of SDK and example are read, and track nobody")
  func privacy() throws {
    for path in ["PushDemo/SupportingFiles", "../../Sources/PushDevice"] {
      let manifest = try Self.propertyList("\(path)/PrivacyInfo.xcprivacy")
      #expect(manifest["NSPrivacyTracking"] as? Bool == false)
      #expect((manifest["NSPrivacyCollectedDataTypes"] as? [Any])?.count == 2)
    }
  }

  @Test(
    "app and extension may reach a backend on a Mac over HTTP, and nothing else",
    arguments: ["PushDemo", "NotificationService"])
  func transportSecurity(_ target: String) throws {
    let info = try Self.propertyList("\(target)/Info.plist")
    let security = try #require(info["NSAppTransportSecurity"] as? [String: Bool])
    #expect(security == ["NSAllowsLocalNetworking": true])
    guard target == "PushDemo" else { return }
    #expect((info["NSLocalNetworkUsageDescription"] as? String)?.isEmpty == false)
  }

  // MARK: Defects that no compiler of another system notices

  /// What is wrong with the project, from the texts of its files.
  ///
  /// - Parameter read: The file of that path below the example's folder.
  private static func faults(_ read: (String) throws -> String) throws -> [String] {
    var faults: [String] = []
    func check(_ isRight: Bool, _ fault: String) { if !isRight { faults.append(fault) } }
    func list(_ text: String) throws -> [String: Any] {
      try #require(
        PropertyListSerialization.propertyList(from: Data(text.utf8), format: nil)
          as? [String: Any])
    }
    let document = try list(try read("PushDemo.xcodeproj/project.pbxproj"))
    let objects = try #require(document["objects"] as? [String: [String: Any]])
    func object(_ id: Any?) -> [String: Any] { (id as? String).flatMap { objects[$0] } ?? [:] }
    func all(_ ids: Any?) -> [[String: Any]] { (ids as? [String] ?? []).map { object($0) } }

    var identifiers: [String: Set<String>] = [:]
    var extensionSources: [String] = []
    for (name, sources) in [
      ("PushDemo", swiftFiles("PushDemo")),
      (
        "NotificationService",
        swiftFiles("NotificationService") + ["DemoSettings.swift", "SharedStorage.swift"]
      ),
    ] {
      let target = try #require(
        objects.values.first {
          $0["isa"] as? String == "PBXNativeTarget" && $0["name"] as? String == name
        })
      let settings = all(object(target["buildConfigurationList"])["buildConfigurations"])
        .map { $0["buildSettings"] as? [String: Any] ?? [:] }
      check(settings.count == 2, "\(name): build configurations")
      for each in settings {
        check(
          each["CODE_SIGN_ENTITLEMENTS"] as? String == "\(name)/\(name).entitlements",
          "\(name): entitlements")
        identifiers[name, default: []].insert(each["PRODUCT_BUNDLE_IDENTIFIER"] as? String ?? "")
      }
      let phases = all(target["buildPhases"])
      func files(_ kind: String) -> [[String: Any]] {
        phases.filter { $0["isa"] as? String == kind }.flatMap { all($0["files"]) }
      }
      let compiled = files("PBXSourcesBuildPhase").map { object($0["fileRef"])["path"] as? String }
      check(Set(compiled) == Set(sources), "\(name): compiles \(compiled)")
      if name == "NotificationService" { extensionSources = compiled.compactMap(\.self) }
      let linked = files("PBXFrameworksBuildPhase").map {
        object($0["productRef"])["productName"] as? String
      }
      for product in ["NotificationHubs", "PushDevice", "PushDeviceSecure"] {
        check(linked.contains(product), "\(name): does not link \(product)")
      }
      let resources = files("PBXResourcesBuildPhase").map {
        object($0["fileRef"])["path"] as? String
      }
      check(resources.contains("devsettings.plist"), "\(name): has no settings")
      if name == "PushDemo" {
        let embedded = phases.filter { "\($0["dstSubfolderSpec"] ?? "")" == "13" }
          .flatMap { all($0["files"]) }.map { object($0["fileRef"])["path"] as? String }
        check(embedded == ["NotificationService.appex"], "the extension is not embedded")
      }
    }
    let app = identifiers["PushDemo"]?.first ?? ""
    check(identifiers["PushDemo"]?.count == 1 && !app.isEmpty, "bundle identifiers of the app")
    check(
      identifiers["NotificationService"]?.allSatisfy { $0.hasPrefix(app + ".") } == true,
      "the extension's bundle identifier is not below the app's")
    check(
      try list(read("PushDemo/Info.plist"))["UILaunchScreen"] != nil, "there is no launch screen")

    func code(_ path: String) throws -> String {
      try read(path).replacing(#/\/\/.*/#, with: "")
    }
    check(
      try code("NotificationService/NotificationService.swift")
        .contains("class NotificationService: PushServiceExtension"),
      "the extension's class is not the SDK's")
    check(
      try code("PushDemo/AppDelegate.swift").contains("class AppDelegate: PushAppDelegate"),
      "the app's delegate is not the SDK's")
    let own = swiftFiles("NotificationService")
    for file in extensionSources {
      let path = (own.contains(file) ? "NotificationService/" : "PushDemo/") + file
      check(try !code(path).contains("UIApplication"), "an extension has no UIApplication: \(path)")
    }
    return faults
  }

  private static func swiftFiles(_ folder: String) -> [String] {
    let names = try? FileManager.default.contentsOfDirectory(
      atPath: Self.folder.appending(path: folder).path)
    return (names ?? []).filter { $0.hasSuffix(".swift") }
  }

  private static func text(_ path: String) throws -> String {
    try String(contentsOf: folder.appending(path: path), encoding: .utf8)
  }

  @Test("the project is whole")
  func whole() throws { #expect(try Self.faults(Self.text) == []) }

  private static let project = "PushDemo.xcodeproj/project.pbxproj"
  private static let service = "NotificationService/NotificationService.swift"

  @Test(
    "a defect is noticed",
    arguments: [
      (service, ": PushServiceExtension", ""),
      ("PushDemo/AppDelegate.swift", ": PushAppDelegate", ""),
      (project, "CODE_SIGN_ENTITLEMENTS = PushDemo/PushDemo.entitlements;", ""),
      ("PushDemo/Info.plist", "\t<key>UILaunchScreen</key>\n\t<dict/>\n", ""),
      (project, "3BAC8A90A441D831775A2AC3 /* ContentView.swift in Sources */,", ""),
      (project, "FB8620F1F63C6E420F154005 /* PushDeviceSecure in Frameworks */,", ""),
      (project, "5A06E6417F508FB7A25E54E0 /* devsettings.plist in Resources */,", ""),
      (
        project,
        "B5EE43570B48A91969739FBB /* NotificationService.appex in Embed Foundation Extensions */,",
        ""
      ),
      (project, "com.example.PushDemo.NotificationService", "com.example.NotificationService"),
      (service, "let storage", "_ = UIApplication.shared; let storage"),
      ("PushDemo/SharedStorage.swift", "static let", "let a = UIApplication.shared; static let"),
    ])
  func defect(_ path: String, _ right: String, _ wrong: String) throws {
    let text = try Self.text(path)
    let start = try #require(text.range(of: right))
    let changed = text.replacingCharacters(in: start, with: wrong)
    let faults = try Self.faults { $0 == path ? changed : try Self.text($0) }
    #expect(!faults.isEmpty)
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
