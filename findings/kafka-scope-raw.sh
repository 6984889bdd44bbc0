#!/bin/sh
# kafka-clients 4.4.0 writes `scope` into the form of its client credentials request as it is where it authenticates by a
# secret, and form-encoded where it signs an assertion or brings one as a grant. A scope that RFC 6749 3.3 allows changes on
# the way: of "api:read+write" a server reads "api:read write", two scopes, or of "a&b" another parameter.
# It concerns every authorization server with "+", "&", "%" or "=" in a scope. Fails if the behaviour changes.
set -eu && folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem
cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>f</groupId><artifactId>f</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-clients</artifactId><version>4.4.0</version></dependency>
<dependency><groupId>org.bitbucket.b_c</groupId><artifactId>jose4j</artifactId><version>0.9.6</version></dependency>
<dependency><groupId>com.fasterxml.jackson.core</groupId><artifactId>jackson-databind</artifactId><version>2.20.0</version></dependency>
</dependencies></project>
XML
cat > Seen.java <<'JAVA'
import java.util.*;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.config.*;
import org.apache.kafka.common.security.oauthbearer.ClientCredentialsJwtRetriever;

public class Seen {
  public static void main(String[] files) throws Exception {
    List<String> bodies = new ArrayList<>();
    var server = com.sun.net.httpserver.HttpServer.create(new java.net.InetSocketAddress("127.0.0.1", 0), 0);
    server.createContext("/", exchange -> {
      bodies.add(new String(exchange.getRequestBody().readAllBytes()));
      byte[] answer = "{\"access_token\":\"a.b.c\",\"token_type\":\"Bearer\"}".getBytes();
      exchange.sendResponseHeaders(200, answer.length);
      exchange.getResponseBody().write(answer);
      exchange.close();
    });
    server.start();
    String url = "http://127.0.0.1:" + server.getAddress().getPort() + "/token";
    System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", url);
    System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.files", files[0]);
    String own = "sasl.oauthbearer.", id = own + "client.credentials.client.id", by = own + "assertion.";
    Map<String, String> secret = Map.of(id, "app", own + "client.credentials.client.secret", "s");
    Map<String, String> assertion = Map.of(id, "app", by + "private.key.file", files[0], by + "algorithm", "ES256",
        by + "claim.aud", "https://as.example", by + "claim.iss", "app", by + "claim.sub", "app");
    for (Map<String, String> proof : List.of(secret, assertion)) {
      Map<String, String> given = new HashMap<>(proof);
      given.putAll(Map.of(own + "token.endpoint.url", url, own + "scope", "api:read+write"));
      ConfigDef all = new ConfigDef();
      SaslConfigs.addClientSaslSupport(all);
      ClientCredentialsJwtRetriever retriever = new ClientCredentialsJwtRetriever();
      retriever.configure(new HashMap<>(all.parse(given)), "OAUTHBEARER", List.of(new AppConfigurationEntry(
          "f", AppConfigurationEntry.LoginModuleControlFlag.REQUIRED, Map.of())));
      retriever.retrieve();
    }
    boolean raw = bodies.get(0).endsWith("scope=api:read+write"), encoded = bodies.get(1).endsWith("scope=api%3Aread%2Bwrite");
    System.out.println(bodies.get(0) + "\nwith an assertion: " + bodies.get(1).replaceAll(".*&scope", "scope"));
    System.exit(raw && encoded ? 0 : 1);
  }
}
JAVA
mvn -q -B dependency:build-classpath -Dmdep.outputFile=classpath > mvn.log 2>&1
java -cp "$(cat classpath)" Seen.java "$folder/key.pem" 2> java.log
